"""Recipes: which builder, sources and settings. Source: docs/formats/puzzles.md#recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gristmill import keys
from gristmill.contract import BadInput
from gristmill.printable import command
from gristmill.puzzles.config import ArcConfig, DominoConfig, GridConfig, MazeConfig, SudokuConfig
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import Table
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml

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
    """How one dataset is made.

    sources: folders below the inbox, as `arc_agi` or `concept_arc/corpus`, in the order in which
        they are read; none where the builder needs no input.
    is_large: whether it is built only where a person asks for it by name, or has built it;
        default False.
    """

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
_WITHOUT_SOURCES: Final = frozenset({"domino"})
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
    if kind in _WITHOUT_SOURCES:
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
