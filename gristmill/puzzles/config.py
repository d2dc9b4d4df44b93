"""The configs of the puzzle family: one for each builder.

CODE_VERSION of a config is raised when its builder makes other files from the same input and
config. The metadata of a field has `help`, a sentence for the user, and `choices`, `least`,
`most` and `unit` where they apply. Fields that cannot change a byte have `affects_output: False`.

Source: `docs/formats/puzzles.md#arc`, `docs/formats/puzzles.md#sudoku`,
`docs/formats/puzzles.md#maze`, `docs/formats/puzzles.md#domino`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from gristmill.settings.fields import MOST_WORKERS, check_fields

TokenType = Literal["int32", "uint8"]
Leaks = Literal["refuse", "drop"]
Unique = Literal["refuse", "drop", "off"]
Change = Literal["reversal", "modular"]

MOST_SEED: Final = 2**63 - 1
MOST_AUGMENTATIONS: Final = 1_000_000

_SEED: Final[dict[str, Any]] = {
    "least": 0,
    "most": MOST_SEED,
    "unit": "none, any number",
    "help": "Decides every draw: augmentations, subsamples, games.",
}
_DTYPE: Final[dict[str, Any]] = {
    "in_event": True,
    "help": "Type of the tokens on disk: int32 as the original document says, or uint8, a quarter"
    " of the size. Training reads the same numbers.",
}
_LEAKS: Final[dict[str, Any]] = {
    "help": "Test examples that training has, too. refuse: nothing is published. drop: they are"
    " left out of the test split, and counted."
}
_SUBSAMPLE: Final[dict[str, Any]] = {
    "least": 1,
    "unit": "puzzles",
    "help": "Training puzzles to take, drawn by the seed; all where it is not set.",
}
_WORKERS: Final[dict[str, Any]] = {
    "affects_output": False,
    "least": 0,
    "most": MOST_WORKERS,
    "unit": "threads",
    "help": "Threads that build one dataset and test its laws; 0 or 1 for no further thread.",
}


@dataclass(frozen=True)
class ArcConfig:
    """How ARC tasks become a dataset. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "1"

    num_aug: int = field(
        default=1000,
        metadata={
            "least": 0,
            "most": MOST_AUGMENTATIONS,
            "unit": "augmentations",
            "help": "Augmentations of every task beside the task itself, at most.",
        },
    )
    seed: int = field(default=42, metadata=_SEED)
    dtype: TokenType = field(default="int32", metadata=_DTYPE)
    leaks: Leaks = field(default="refuse", metadata=_LEAKS)
    workers: int = field(default=1, metadata=_WORKERS)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class SudokuConfig:
    """How Sudokus become a dataset. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "1"

    subsample_size: int | None = field(default=None, metadata=_SUBSAMPLE)
    min_difficulty: int | None = field(
        default=None,
        metadata={
            "help": "Least rating of a puzzle of either split; not set: all are taken.",
            "unit": "points of rating",
        },
    )
    num_aug: int = field(
        default=0,
        metadata={
            "least": 0,
            "most": MOST_AUGMENTATIONS,
            "unit": "augmentations",
            "help": "Augmentations of every training puzzle beside the puzzle itself.",
        },
    )
    test_share: float = field(
        default=0.2,
        metadata={
            "least": 0,
            "most": 1,
            "unit": "fraction of the puzzles",
            "help": "Share of a plain puzzle bank that goes to the test split; files with"
            " a split of their own do not use it.",
        },
    )
    unique: Unique = field(
        default="refuse",
        metadata={
            "help": "Puzzles with more than one solution. refuse: nothing is published. drop: they"
            " are left out, and counted. off: they are not looked for."
        },
    )
    seed: int = field(default=42, metadata=_SEED)
    dtype: TokenType = field(default="int32", metadata=_DTYPE)
    leaks: Leaks = field(default="refuse", metadata=_LEAKS)
    workers: int = field(default=1, metadata=_WORKERS)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class MazeConfig:
    """How mazes become a dataset. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "2"

    subsample_size: int | None = field(default=None, metadata=_SUBSAMPLE)
    aug: bool = field(
        default=False,
        metadata={"help": "Whether training has every maze turned and mirrored, eight in all."},
    )
    seed: int = field(default=42, metadata=_SEED)
    dtype: TokenType = field(default="int32", metadata=_DTYPE)
    leaks: Leaks = field(default="refuse", metadata=_LEAKS)
    workers: int = field(default=1, metadata=_WORKERS)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class DominoConfig:
    """How Domino games become a dataset. Each field has its help text in its metadata.

    Raises ValueError for a value of another type, or one that a field does not allow.
    """

    CODE_VERSION: ClassVar = "1"

    num_games: int = field(
        default=10_000,
        metadata={
            "least": 1,
            "most": 100_000_000,
            "unit": "games",
            "help": "Games to sample for each split.",
        },
    )
    subsample_size: int | None = field(default=None, metadata=_SUBSAMPLE)
    num_aug: int = field(
        default=0,
        metadata={
            "least": 0,
            "most": MOST_AUGMENTATIONS,
            "unit": "augmentations",
            "help": "Augmentations of every training scenario beside the scenario itself, at most.",
        },
    )
    augmentation: Change = field(
        default="reversal",
        metadata={
            "help": "What an augmentation changes. reversal: the direction of the chain and the"
            " order of the hand, so that the move means the same. modular: adds an offset to all"
            " values, as the original did; tiles are then no longer stored low to high, and the"
            " label need not be the heaviest playable tile."
        },
    )
    seed: int = field(default=42, metadata=_SEED)
    dtype: TokenType = field(default="int32", metadata=_DTYPE)
    leaks: Leaks = field(default="drop", metadata=_LEAKS)
    workers: int = field(default=1, metadata=_WORKERS)

    def __post_init__(self) -> None:
        check_fields(self)
