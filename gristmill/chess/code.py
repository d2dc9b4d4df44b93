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
        "50d5abebc1b5e4eeb72e0db7179cbf1cf211cc7d62b53cdde58a5ab44854af1d",
        "4f11f7d5eceba47752bbfb476e35b775a50424d0977ad36eb8a71a9dad136f91",
        "0e9b1c99840053997dd0a857cec7ba12a8a5fd06581e2ddba7b530330617017b",
        "32c8a439bb65be4f1b918315dbaff3a56b6ea624c734d1afdca1c13f0a91d622",
        "e07619d7f7c77a2cfd798363e9790b1dadd7f10b3ef0a5ee9fb7cd9b2078c392",
    ),
    undigested="5ca4a2202be5c2b567bfaf3a3bc84c23cc9d443d3341fe8e4e1c6dafa6a366c5",
)
VALID = Code(
    entries=("gristmill.chess.builders.validate.validate",),
    libraries=("chess",),
)
GAMES = Code(
    entries=("gristmill.chess.builders.game_dataset.build_game_dataset",),
    libraries=("chess",),
    compatible_with=(
        "b30e5719194efab2fe9c3d41638b18d18623e785d8781babb9d1e900aed5f910",
        "aa8807522d80ab6b1cff410b2e0bc59bb362ef05a5e444c6a4d85cb3e21fd2da",
    ),
)
CACHE = Code(
    entries=("gristmill.chess.builders.splice_cache.build_splice_cache",),
    libraries=("chess",),
    compatible_with=(
        "7e8c3a191968587c9d6e4db863163e717b0e591aed57a07127b515b0ca37ba10",
        "95fb13308fcdf0a3a135fac3d80333384d683b67a64e10a4d5374a120f7a8031",
    ),
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
        "cd62afc93efa2dbb37fd71a5945b402f9efb3cb641a65d094fb5ee446a18d0f1",
        "7aac19629220c4d8a24151780c7a75af8a1b34df5839dabef10996cbb26848b4",
        "794e4f66eea5c29219d557b06231597b1e4a44057f49ed65400810ee0a426eff",
    ),
    undigested="d35529ecfc80ca3a7eb943ed102fbd65eef00620fd7076b6e6d4363ae7f1d4cb",
)
