"""The samples of game datasets as a source of the loader."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from gristmill.chess.config import CacheConfig
from gristmill.chess.read.months import OpenMonth
from gristmill.chess.read.origins import row_at, sample_origins
from gristmill.contract import Trace
from gristmill.families import Request
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, identity_of
from gristmill.reading.generation import Generation

_ASSET: Final = "chess/game_dataset"


class Samples(Protocol):
    """What this module needs of a GameSpliceDataset."""

    dataset_dirs: list[Path]
    split: str
    horizon: int
    config: CacheConfig

    @property
    def held(self) -> list[OpenMonth]:
        """The open months."""

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Of months and caches."""

    def batch(self, indices: Numbers) -> Columns:
        """Samples by number as arrays."""

    def vocabulary(self) -> dict[str, int]:
        """The number of each move."""


class SpliceSource:
    """Samples by number over the months in the order of the reader, one shard a month.

    A cache decides no number, so its version is no part of the identity; its four settings are.
    """

    def __init__(self, data: Samples) -> None:
        self._data = data
        months = [each for each in data.generations if each.folder in data.dataset_dirs]
        settings = {"cache": data.config.contract()}
        self.identity = identity_of(_ASSET, months, data.split, settings)
        ends = np.cumsum([len(month.arrays.indices) for month in data.held])
        self.cuts: Numbers = np.append(0, ends).astype(np.int64)

    @cached_property
    def words(self) -> str:
        """The digest of the vocabulary, which hangs on the months: others mean other moves."""
        return sha256("\n".join(self._data.vocabulary()).encode()).hexdigest()

    def read(self, numbers: Numbers) -> Columns:
        """Context, target, their masks, phase, winner and side to move, as `collate`.

        Contexts are as wide as the longest of the batch, targets as wide as the horizon.
        """
        return self._data.batch(numbers)

    def shown(self, number: int) -> Iterator[Request]:
        """The game of a sample, at the end of the context."""
        folder, _, offset, index = self._place(number)
        options = {"split": self._data.split, "ply": index + 1}
        yield Request(folder, str(row_at(folder, self._data.split, offset)), options)

    def origin(self, number: int) -> Iterator[Trace]:
        """The game of a sample, its bytes in the PGN and in the drop."""
        folder, inside, offset, index = self._place(number)
        return sample_origins(folder, self._data.split, inside, offset, index)

    def _place(self, number: int) -> tuple[Path, int, int, int]:
        """The month of a sample, its number there, the byte of its row, and its splice index."""
        month = int(np.searchsorted(self.cuts, number, "right")) - 1
        inside = number - int(self.cuts[month])
        arrays = self._data.held[month].arrays
        offset, index = int(arrays.offsets[inside]), int(arrays.indices[inside])
        return self._data.dataset_dirs[month], inside, offset, index
