"""The rows of a pack or pool as a source of the loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np

from gristmill.contract import Trace
from gristmill.families import Request
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, identity_of
from gristmill.macroxue.format.metadata_db import Run
from gristmill.macroxue.read.gather import Indices
from gristmill.macroxue.read.origins import row_origins
from gristmill.reading.generation import Generation

_ASSET: Final = "macroxue/pack"
"""A pool has rows of the same form; data versions tell them apart."""


class Steps(Protocol):
    """What this module needs of a StepDataset."""

    run_table: list[Run]

    def __len__(self) -> int:
        """Number of rows."""

    def batch(self, indices: Indices) -> Columns:
        """The columns of rows by name, as `StepDataset.batch`."""

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Of the pack, and of its sidecar."""


class StepSource:
    """Rows by number, with the columns of `StepDataset.batch`; `game_bounds` are those of the runs.

    The identity does not have the version of the sidecar: its rows have the numbers of the pack's.
    """

    def __init__(self, data: Steps) -> None:
        self._data = data
        self.identity = identity_of(_ASSET, data.generations[:1])
        self.cuts: Numbers = np.array([0, len(data)], np.int64)

    @property
    def game_bounds(self) -> Numbers:
        """The first row of each run that has rows, and the number of all, for `Grouped`."""
        steps = np.array([run.steps for run in self._data.run_table if run.steps], np.int64)
        return np.append(0, np.cumsum(steps))

    def read(self, numbers: Numbers) -> Columns:
        """The columns of rows [N]."""
        return self._data.batch(numbers)

    def shown(self, number: int) -> Iterator[Request]:
        """The row."""
        yield Request(self._data.generations[0].folder, str(number))

    def origin(self, number: int) -> Iterator[Trace]:
        """The run of a row, and its line in the raw file."""
        return row_origins(self._data.generations[0].folder, number)
