"""Chess: which functions and libraries decide the output of each asset.

See also `gristmill.code.digest`: how a digest is made of them, and what its entries
mean. `python -m tests.goldens` prints the digests of the code that stands.
"""

from __future__ import annotations

from gristmill.code.digest import Code

ELITE = Code(
    entries=(
        "gristmill.chess.raw.archive.fetch_month",
        "gristmill.chess.raw.archive.take_drop",
        "gristmill.chess.raw.collections.take_collection",
    ),
    compatible_with=(
        "e659ede3733fa70e1b69565d02010d216b6eebc4e7521c107fb9fac0afb27816",
        "5b462c836c3f9f76419089d092c02a4d78470078b13325a691077f4465fdc07a",
        "5ca4a2202be5c2b567bfaf3a3bc84c23cc9d443d3341fe8e4e1c6dafa6a366c5",
        "4f11f7d5eceba47752bbfb476e35b775a50424d0977ad36eb8a71a9dad136f91",
        "0e9b1c99840053997dd0a857cec7ba12a8a5fd06581e2ddba7b530330617017b",
    ),
    undigested="5ca4a2202be5c2b567bfaf3a3bc84c23cc9d443d3341fe8e4e1c6dafa6a366c5",
)
VALID = Code(
    entries=("gristmill.chess.builders.validate.validate",),
    libraries=("chess",),
    compatible_with=(
        "c44cdfe0c51d71b969ee6bb910a527a030fefd68eee0ce785706fe709ec4ec8c",
        "cbe205e7a91de8a91849f97182b46d9b3dee7c8218da0227403c14be0d8db915",
        "1f41fa42191b3045aa8a4de7f0e83b47e3e8a251477f491e51243d5645dab3a1",
    ),
)
GAMES = Code(
    entries=("gristmill.chess.builders.game_dataset.build_game_dataset",),
    libraries=("chess",),
    compatible_with=(
        "448fc1116290b886a793577f008d45822435436cd884fe9a788cf2cf88dd0a97",
        "9233473875285fb9fc3e1d300a9531c12c3ebfc7bac4646925a52d9d815217ef",
        "36d38218a8bfba2d87b9201f2e610255fe4e1262fa87bc86bfdcdbb566ce9e33",
        "23c896ffe612f67b307642675b77aa2968333edf9ec2c710ef67a8e253628eb3",
        "28f137f4bf198ba16ffdb4cfd995a4767fa9bf0c4890c54890ef338bbbc0f27e",
        "1f398a2ddaa54ab0869a33a1df82f276d7ea7b00e2ed4284247e247be9cbd29e",
    ),
    undigested="36d38218a8bfba2d87b9201f2e610255fe4e1262fa87bc86bfdcdbb566ce9e33",
)
CACHE = Code(
    entries=("gristmill.chess.builders.splice_cache.build_splice_cache",),
    libraries=("chess",),
    compatible_with=(
        "1ce0027ab603dd4746f653bd6a3bb6668ce92e40ac84be125aef586356f4f79b",
        "36354a1b0d623538f150d9cd383a4a5d5ae8961524491ca2469ee27acdc91b3f",
        "5d46602360f8ab7dfc811b05b411fc7346306c8658b05de365990280589b4082",
        "b15214bae9c5d0a4620fddd5f6caa48c5f7684870ff2a9109ce59175272e77c0",
        "1803e85cb15cbf57996b28e89f7ad1eab4bc46dddec18b41e0bf09c260f4ff69",
    ),
    undigested="5d46602360f8ab7dfc811b05b411fc7346306c8658b05de365990280589b4082",
)
SUBSET = Code(entries=("gristmill.chess.builders.subset.build_subset",), libraries=("chess",))
SPLICES = Code(
    entries=("gristmill.chess.builders.splice_dataset.build_splice_dataset",),
    libraries=("chess",),
    compatible_with=(
        "b374bb669274736ce188d2890a186f36e649eeb9e8471cd102f57ddf730ab09f",
        "6c25bed9c00905043a836d9d6e14ae10a8425972d70afaa4a1527da261d9153b",
        "d35529ecfc80ca3a7eb943ed102fbd65eef00620fd7076b6e6d4363ae7f1d4cb",
        "e33ec84dee2f147599d69e10ed4db159f9e3a959141ff5ec306c8171532bc8be",
        "2fb2b9f0417a41ff15ffd68b986692920b667264c871b3a0b2607ce8ba607034",
    ),
    undigested="d35529ecfc80ca3a7eb943ed102fbd65eef00620fd7076b6e6d4363ae7f1d4cb",
)
