"""Chess: which functions and libraries decide the output of each asset."""

from __future__ import annotations

from gristmill.code.digest import Code

ELITE = Code(
    entries=(
        "gristmill.chess.raw.download.fetch_month",
        "gristmill.chess.raw.download.take_drop",
        "gristmill.chess.raw.drops.take_collection",
    ),
    compatible_with=(
        "fd5ae4e2fb148f69e04b267b03a77402630e615bdf1cbf99670d79d612d44d22",
        "4f11f7d5eceba47752bbfb476e35b775a50424d0977ad36eb8a71a9dad136f91",
        "0e9b1c99840053997dd0a857cec7ba12a8a5fd06581e2ddba7b530330617017b",
        "5ca4a2202be5c2b567bfaf3a3bc84c23cc9d443d3341fe8e4e1c6dafa6a366c5",
    ),
    undigested="5ca4a2202be5c2b567bfaf3a3bc84c23cc9d443d3341fe8e4e1c6dafa6a366c5",
)
VALID = Code(
    entries=("gristmill.chess.builders.validate.validate",),
    libraries=("chess",),
    compatible_with=("8be34c37b21b0475d147ac083c025b20879693a6d85e434b18f11b35dbedaeec",),
)
GAMES = Code(
    entries=("gristmill.chess.builders.datasets.build_game_dataset",),
    libraries=("chess",),
    compatible_with=("888862c6c271b7a360ac78a86f516c61a48ab23b9cf96a16f82b78e3f3c9ac9a",),
)
CACHE = Code(
    entries=("gristmill.chess.builders.datasets.build_splice_cache",),
    libraries=("chess",),
    compatible_with=("c663d690bf712c983689a6d76c23d090974f8430780b4dce9f5f22eb7a206c4a",),
)
SUBSET = Code(
    entries=(
        "gristmill.chess.builders.splits.build_subset",
        "gristmill.chess.builders.datasets.build_splice_cache",
    ),
    libraries=("chess",),
)
SPLICES = Code(
    entries=("gristmill.chess.builders.datasets.build_splice_dataset",),
    libraries=("chess",),
    compatible_with=(
        "abbbfbbfd4e31f834eaad30d0cc31b146ece1be5d26673834aff75a6e42cd2b3",
        "e33ec84dee2f147599d69e10ed4db159f9e3a959141ff5ec306c8171532bc8be",
        "2fb2b9f0417a41ff15ffd68b986692920b667264c871b3a0b2607ce8ba607034",
        "d35529ecfc80ca3a7eb943ed102fbd65eef00620fd7076b6e6d4363ae7f1d4cb",
    ),
    undigested="d35529ecfc80ca3a7eb943ed102fbd65eef00620fd7076b6e6d4363ae7f1d4cb",
)
