"""Recipes: which builder makes a dataset, from which sources, with which settings.

See also `recipe_file.py`: recipes that a person writes. Source: `docs/formats/puzzles.md#recipes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gristmill.puzzles.config import ArcConfig, DominoConfig, GridConfig, MazeConfig, SudokuConfig

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

    name: of the recipe, of its partition and of the dataset's folder.
    kind: one of `KINDS`.
    sources: folders below the inbox, as `arc_agi` or `concept_arc/corpus`, in the order in which
        they are read; none where the builder needs no input.
    settings: fields of the config of the kind.
    """

    name: str
    kind: str
    sources: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def drops(self) -> tuple[str, ...]:
        """The drops that hold the sources, each once."""
        return tuple(dict.fromkeys(source.partition("/")[0] for source in self.sources))

    @property
    def asset(self) -> str:
        """The key of the asset that builds the dataset."""
        return f"puzzles/{self.kind}"


_BUILT_IN = (
    Recipe(
        "arc-aug-1000",
        "arc",
        ("arc_agi", "concept_arc/corpus"),
        {"num_aug": 1000, "dtype": "uint8"},
    ),
    Recipe("arc-1-aug-1000", "arc", ("arc_agi",), {"num_aug": 1000, "dtype": "uint8"}),
    Recipe("arc-2-aug-1000", "arc", ("arc_agi_2",), {"num_aug": 1000, "dtype": "uint8"}),
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
    return is_built_in and bool(recipe.sources) and set(recipe.sources) < set(other.sources)
