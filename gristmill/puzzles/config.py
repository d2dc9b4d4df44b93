"""The configs of the puzzle family: one for each builder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from gristmill.settings import fields
from gristmill.settings.fields import IN_EVENT, Checked, Count, Ge, Help, Le, Positive, Share, Unit

MOST_SEED: Final = 2**63 - 1
MOST_AUGMENTATIONS: Final = 1_000_000
_DIGITS: Final = "123456789"
MOST_IDENTIFIERS: Final = 1 << 24
"""Of a dataset: each is a name in `identifiers.json`, and a row of a model's embedding."""
MOST_VALUES: Final = (1 << 16) - 2
MOST_SIDE: Final = 512
"""Rows and columns of a grid."""

Seed = Annotated[
    fields.Seed, Le(MOST_SEED), Help("Decides every draw: augmentations, subsamples, games.")
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
Side = Annotated[int | None, Ge(1), Le(MOST_SIDE), Unit("cells")]
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
    fields.Workers,
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
    seed: Seed = 42
    dtype: Dtype = "int32"
    leaks: Leaks = "refuse"
    workers: Workers = 1
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


@dataclass(frozen=True)
class GridConfig(Checked):
    """How grids of any symbols become a dataset (docs/formats/puzzles.md#grids)."""

    CODE_VERSION: ClassVar = "1"

    alphabet: Annotated[
        str | None, Help("The characters that cells may be, in the order of their tokens, as .#SG.")
    ] = None
    values: Annotated[
        int | None,
        Ge(1),
        Le(MOST_VALUES),
        Unit("numbers"),
        Help("Cells are the numbers from 0 up to this one, which is none of them."),
    ] = None
    pad: Annotated[
        str | None,
        Help(
            "The cell that is padding, as a character or a number: it is token 0, and has no loss "
            "in outputs. Not set: no cell is, and tokens begin at 1."
        ),
    ] = None
    height: Annotated[
        Side, Help("Rows that every grid is padded to; not set: those of the largest grid.")
    ] = None
    width: Annotated[
        Side, Help("Columns that every grid is padded to; not set: those of the largest grid.")
    ] = None
    dihedral: Annotated[
        bool,
        Help(
            "Whether training has every puzzle turned and mirrored, eight in all. Only where its "
            "rules stay the same."
        ),
    ] = False
    identifiers: Annotated[
        bool,
        Help("Whether each puzzle has an identifier, by its key `puzzle`, as those of ARC have."),
    ] = False
    test_share: Annotated[
        Share,
        Unit("fraction of the groups"),
        Help(
            "Share of the groups that goes to the test split; train.jsonl and test.jsonl do not "
            "use it."
        ),
    ] = 0.2
    first_identifier: FirstIdentifier = 1
    num_puzzle_identifiers: NumIdentifiers = None
    seed: Seed = 42
    dtype: Dtype = "int32"
    leaks: Leaks = "refuse"
    workers: Workers = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alphabet is not None and self.values is not None:
            raise ValueError("alphabet and values: set one of them")
        cells = self.alphabet if self.alphabet is not None else [*map(str, range(self.values or 0))]
        if self.alphabet is not None and not _is_alphabet(self.alphabet):
            rule = "must be different characters that can be printed, 1 at least"
            raise ValueError(f"alphabet = {self.alphabet!r:.40}: {rule}")
        if self.pad is not None and self.pad not in [*cells]:
            raise ValueError(f"pad = {self.pad!r:.20}: must be one of the cells")
        if self.pad is not None and len(cells) < 2:
            raise ValueError("pad: a grid needs a cell that is no padding")
        if self.dihedral and self.height != self.width:
            raise ValueError("dihedral: a turned grid fits where height and width are equal")


def _is_alphabet(text: str) -> bool:
    return 0 < len(text) == len(set(text)) <= MOST_VALUES and text.isprintable()
