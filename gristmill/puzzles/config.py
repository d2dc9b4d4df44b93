"""The configs of the puzzle family, one for each builder, and the recipes that have them.

Source: docs/formats/puzzles.md#recipes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from gristmill import keys
from gristmill.contract import BadInput
from gristmill.printable import command
from gristmill.settings import fields
from gristmill.settings.fields import (
    IN_EVENT,
    Checked,
    Count,
    Ge,
    Help,
    Le,
    Positive,
    Share,
    Unit,
    did_you_mean,
    shown,
)
from gristmill.settings.tables import Table
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml

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


CONFIGS: Final[Mapping[str, type[Any]]] = {
    "arc": ArcConfig,
    "sudoku": SudokuConfig,
    "maze": MazeConfig,
    "domino": DominoConfig,
    "grid": GridConfig,
}
"""The config of each kind."""
KINDS: Final = tuple(CONFIGS)
DOMINO: Final = "domino"
"""The kind that has no sources: its games are sampled."""


@dataclass(frozen=True)
class Recipe:
    """How one dataset is made; a large one is built only where a person asks for it."""

    name: str
    kind: str
    sources: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_large: bool = field(default=False, compare=False)

    @property
    def drops(self) -> tuple[str, ...]:
        """The drops that hold the sources, each once."""
        return tuple(dict.fromkeys(source.partition("/")[0] for source in self.sources))

    @property
    def asset(self) -> str:
        """The key of the asset that builds the dataset."""
        return f"puzzles/{self.kind}"


_BUILT_IN: Final[Sequence[Recipe]] = (
    *(
        Recipe(f"{name}-aug-{count}", "arc", sources, settings, is_large)
        for count, settings, is_large in (
            (20, {"num_aug": 20}, False),
            # As the papers train: a person asks for these 3.2 million rows.
            (1000, {"num_aug": 1000, "dtype": "uint8"}, True),
        )
        for name, sources in (
            ("arc", ("arc_agi", "concept_arc/corpus")),
            ("arc-1", ("arc_agi",)),
            ("arc-2", ("arc_agi_2",)),
        )
    ),
    Recipe("arc-sample", "arc", ("arc-sample",), {"num_aug": 8}),
    Recipe("sudoku-extreme-full", "sudoku", ("sudoku-extreme",)),
    Recipe("sudoku-sample", "sudoku", ("sudoku-sample",), {"num_aug": 3}),
    Recipe("maze-30x30-hard-1k", "maze", ("maze-30x30-hard-1k",)),
    Recipe("maze-sample", "maze", ("maze-sample",), {"aug": True}),
    Recipe("grid-sample", "grid", ("grid-sample",), {"alphabet": ".#So", "dihedral": True}),
    Recipe("domino-optimal-play", "domino"),
    Recipe("domino-sample", "domino", settings={"num_games": 200, "num_aug": 2}),
)
BUILT_IN: Final[Mapping[str, Recipe]] = {recipe.name: recipe for recipe in _BUILT_IN}
"""The recipes that there are without a file, by name."""


def is_part(recipe: Recipe, other: Recipe) -> bool:
    """Whether two recipes are built in, and the other one has all sources of the first and more."""
    is_built_in = BUILT_IN.get(recipe.name) == recipe and BUILT_IN.get(other.name) == other
    is_alike = is_built_in and recipe.is_large == other.is_large
    return is_alike and bool(recipe.sources) and set(recipe.sources) < set(other.sources)


FOLDER: Final = "recipes"
"""The folder of the inbox that holds recipe files, and is no source."""
_KNOWN: Final = ("kind", "sources", "settings")
_MOST_SOURCES: Final = 100
_MOST_FOLDERS: Final = 16


def read_recipe_file(path: Path, links: LinkRule = REFUSE_LINKS) -> Recipe:
    """Read and check a recipe file. Raises BadInput for one that breaks a rule, and OSError."""
    try:
        raw = read_toml(path, root=path.parent, links=links)
    except FileNotFoundError as error:
        raise BadInput(
            path,
            "the recipe file is gone: bring it back, or retire its partition with "
            f"`{command('retire', path.name.removesuffix('.toml'))}`",
        ) from error
    if unknown := sorted(set(raw) - set(_KNOWN)):
        raise BadInput(path, _unknown_key(unknown[0], raw.get("kind")))
    name = path.name.removesuffix(".toml")
    if "kind" not in raw:
        raise BadInput(path, f"`kind` is missing: it must be one of {', '.join(KINDS)}")
    kind = raw["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadInput(path, f"kind = {shown(kind)}: must be one of {', '.join(KINDS)}")
    if reason := keys.refusal(name):
        raise BadInput(path, reason)
    built_in = BUILT_IN.get(name)
    if built_in is not None and built_in.kind != kind:
        raise BadInput(
            path,
            f"kind = {shown(kind)}: the built-in recipe {name} has the kind {built_in.kind}, and "
            "a name has one kind: rename the file",
        )
    sources = _sources(path, raw.get("sources", []), kind)
    table = Table("settings", CONFIGS[kind])
    checked = table.checked(path, raw.get("settings", {}))
    try:
        CONFIGS[kind](**checked)
    except ValueError as error:
        raise BadInput(path, f"{table.header} {error}") from error
    return Recipe(name, kind, sources, checked)


def _sources(path: Path, value: object, kind: str) -> tuple[str, ...]:
    """The sources, checked."""
    if not isinstance(value, list) or not all(isinstance(source, str) for source in value):
        raise BadInput(path, "`sources` must be a list of folders below drops/puzzles/")
    if kind == DOMINO:
        if value:
            raise BadInput(path, f"`sources`: {kind} makes its puzzles itself: leave the key out")
        return ()
    if not 1 <= len(value) <= _MOST_SOURCES or len(set(value)) != len(value):
        raise BadInput(path, f"`sources` must name from 1 to {_MOST_SOURCES} folders, each once")
    for source in value:
        _check_source(path, source)
    return tuple(value)


def _check_source(path: Path, source: str) -> None:
    parts = source.split("/")
    if len(parts) > _MOST_FOLDERS:
        raise BadInput(path, f"`sources`: {shown(source)} has more than {_MOST_FOLDERS} folders")
    for part in parts:
        if reason := keys.refusal(part):
            raise BadInput(path, f"`sources`: {shown(source)}: {reason}")
    if parts[0] == FOLDER:
        raise BadInput(path, f"`sources`: {FOLDER} holds recipe files: name the folder of a drop")


def _unknown_key(name: str, kind: object) -> str:
    if isinstance(kind, str) and kind in KINDS and name in Table("", CONFIGS[kind]).rules():
        return f"{name} is a setting: write it below a line [settings]"
    known = f"the known keys are {', '.join(_KNOWN)}"
    return f"unknown key {shown(name)}{did_you_mean(name, _KNOWN)}; {known}"
