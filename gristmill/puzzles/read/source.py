"""The examples of a puzzle dataset as a source of the loader.

Source: `docs/formats/loading.md#sources`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from gristmill.contract import Trace
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, identity_of
from gristmill.puzzles.read.origins import example_origins
from gristmill.puzzles.read.split_files import MappedSplit
from gristmill.reading.generation import Generation

_ASSET: Final = "puzzles"
"""All kinds have the same arrays; data versions tell them apart."""


class Examples(Protocol):
    """What this module needs of PuzzleExamples."""

    @property
    def split(self) -> str:
        """Which one it is."""

    @property
    def held(self) -> MappedSplit:
        """The open split."""

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Of the dataset."""

    def batch(self, numbers: Numbers) -> dict[str, Any]:
        """Examples by number."""


class ExampleSource:
    """Examples by number over all sets of a split, one shard a set."""

    def __init__(self, data: Examples) -> None:
        self._data = data
        self.identity = identity_of(_ASSET, data.generations, data.split)
        ends = np.cumsum([made.examples for made in data.held.sets])
        self.cuts: Numbers = np.append(0, ends).astype(np.int64)

    @property
    def group_bounds(self) -> Numbers:
        """The first example of each group of each set, and the number of all."""
        firsts = [
            first + made.puzzle_indices[made.group_indices[:-1]].astype(np.int64)
            for first, made in zip(self.cuts.tolist(), self._data.held.sets, strict=False)
        ]
        return np.concatenate([*firsts, self.cuts[-1:]])

    def read(self, numbers: Numbers) -> Columns:
        """Inputs, labels and puzzle_identifiers, int32."""
        return self._data.batch(numbers)

    def origin(self, number: int) -> Iterator[Trace]:
        """The raw row of an example, and what was done with it."""
        place = int(np.searchsorted(self.cuts, number, "right")) - 1
        row, name = number - int(self.cuts[place]), self._data.held.sets[place].name
        folder: Path = self._data.generations[0].folder
        return iter(example_origins(folder, row, self._data.split, name))
