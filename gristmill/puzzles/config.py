"""The configs of the puzzle family: one for each builder.

CODE_VERSION of a config is raised when its builder makes other files from the same input and
config. The type of a field says what it means (`gristmill.settings.kinds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from gristmill.settings import kinds
from gristmill.settings.fields import Checked
from gristmill.settings.kinds import IN_EVENT, Count, Ge, Help, Le, Positive, Share, Unit

MOST_SEED: Final = 2**63 - 1
MOST_AUGMENTATIONS: Final = 1_000_000
_DIGITS: Final = "123456789"
MOST_IDENTIFIERS: Final = 1 << 24
"""Of a dataset: each is a name in `identifiers.json`, and a row of a model's embedding."""

Seed = Annotated[
    kinds.Seed, Le(MOST_SEED), Help("Decides every draw: augmentations, subsamples, games.")
]
Dtype = Annotated[
    Literal["int32", "uint8"],
    IN_EVENT,
    Help(
        "Type of the tokens on disk: int32 as the original document says, or uint8, a quarter of "
        "the size. Training reads the same numbers."
    ),
]
Leaks = Annotated[
    Literal["refuse", "drop"],
    Help(
        "Test examples that training has, too. refuse: nothing is published. drop: they are left "
        "out of the test split, and counted."
    ),
]
Subsample = Annotated[
    int | None,
    Ge(1),
    Unit("puzzles"),
    Help("Training puzzles to take, drawn by the seed; all where it is not set."),
]
Augmentations = Annotated[Count, Le(MOST_AUGMENTATIONS), Unit("augmentations")]
FirstIdentifier = Annotated[
    Positive,
    Le(MOST_IDENTIFIERS - 1),
    Unit("none, a number"),
    Help(
        "Identifier of the first puzzle. Datasets that train together, as in the list of paths of "
        "TRM, need ranges that do not meet."
    ),
]
NumIdentifiers = Annotated[
    int | None,
    Ge(1),
    Le(MOST_IDENTIFIERS),
    Unit("identifiers"),
    Help(
        "Number of identifiers that the metadata states. Datasets that train together in TRM must "
        "state one number; not set: one more than the last identifier."
    ),
]
Workers = Annotated[
    kinds.Workers,
    Unit("threads"),
    Help("Threads that build one dataset and test its laws; 0 or 1 for no further thread."),
]


@dataclass(frozen=True)
class ArcConfig(Checked):
    """How ARC tasks become a dataset (docs/formats/puzzles.md#arc)."""

    CODE_VERSION: ClassVar = "2"

    num_aug: Annotated[
        Augmentations, Help("Augmentations of every task beside the task itself, at most.")
    ] = 1000
    evaluation: Annotated[
        tuple[str, ...],
        Help(
            "Folders of a source, or subsets of Kaggle's files, whose test pairs are the test "
            "split. Those of the others are for training."
        ),
    ] = ("evaluation",)
    subsets: Annotated[
        tuple[str, ...],
        Help("Folders of a source, or subsets of Kaggle's files, that are read; empty: all."),
    ] = ()
    first_identifier: FirstIdentifier = 1
    num_puzzle_identifiers: NumIdentifiers = None
    seed: Seed = 42
    dtype: Dtype = "int32"
    leaks: Leaks = "refuse"
    workers: Workers = 1


@dataclass(frozen=True)
class SudokuConfig(Checked):
    """How Sudokus become a dataset (docs/formats/puzzles.md#sudoku)."""

    CODE_VERSION: ClassVar = "2"

    subsample_size: Subsample = None
    min_difficulty: Annotated[
        int | None,
        Unit("points of rating"),
        Help("Least rating of a puzzle of either split; not set: all are taken."),
    ] = None
    num_aug: Annotated[
        Augmentations, Help("Augmentations of every training puzzle beside the puzzle itself.")
    ] = 0
    test_share: Annotated[
        Share,
        Unit("fraction of the puzzles"),
        Help(
            "Share of a plain puzzle bank that goes to the test split; files with a split of their "
            "own do not use it."
        ),
    ] = 0.2
    question_column: Annotated[
        str | None,
        Help(
            "Column of the puzzles in CSV files; not set: question, quizzes, quiz, puzzle or "
            "puzzles."
        ),
    ] = None
    answer_column: Annotated[
        str | None,
        Help(
            "Column of the solutions in CSV files; not set: answer, answers, solution or solutions."
        ),
    ] = None
    blank: Annotated[
        str | None,
        Help(
            "Sign of a blank cell beside . and 0, one character such as _; not set: there is none."
        ),
    ] = None
    unique: Annotated[
        Literal["refuse", "drop", "off"],
        Help(
            "Puzzles with more than one solution. refuse: nothing is published. drop: they are "
            "left out, and counted. off: they are not looked for."
        ),
    ] = "refuse"
    seed: Seed = 42
    dtype: Dtype = "int32"
    leaks: Leaks = "refuse"
    workers: Workers = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        sign = self.blank
        if sign is not None and not (len(sign) == 1 and "!" <= sign <= "~" and sign not in _DIGITS):
            raise ValueError(f"blank = {sign!r:.20}: must be one character of ASCII, and no digit")


@dataclass(frozen=True)
class MazeConfig(Checked):
    """How mazes become a dataset (docs/formats/puzzles.md#maze)."""

    CODE_VERSION: ClassVar = "3"

    subsample_size: Subsample = None
    aug: Annotated[
        bool, Help("Whether training has every maze turned and mirrored, eight in all.")
    ] = False
    seed: Seed = 42
    dtype: Dtype = "int32"
    leaks: Leaks = "refuse"
    workers: Workers = 1


@dataclass(frozen=True)
class DominoConfig(Checked):
    """How Domino games become a dataset (docs/formats/puzzles.md#domino)."""

    CODE_VERSION: ClassVar = "2"

    num_games: Annotated[
        Positive, Le(100_000_000), Unit("games"), Help("Games to sample for each split.")
    ] = 10_000
    subsample_size: Subsample = None
    num_aug: Annotated[
        Augmentations,
        Help("Augmentations of every training scenario beside the scenario itself, at most."),
    ] = 0
    augmentation: Annotated[
        Literal["reversal", "modular"],
        Help(
            "What an augmentation changes. reversal: the direction of the chain and the order of "
            "the hand, so that the move means the same. modular: adds an offset to all values, as "
            "the original did; tiles are then no longer stored low to high, and the label need not "
            "be the heaviest playable tile."
        ),
    ] = "reversal"
    seed: Seed = 42
    dtype: Dtype = "int32"
    leaks: Leaks = "drop"
    workers: Workers = 1
