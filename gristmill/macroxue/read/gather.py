"""Random access to the rows of several mapped npy files.

See also `dataset.py`: what the rows mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.rows import Rows
from gristmill.reading.sample_numbers import numbers_of

Indices = npt.NDArray[np.integer[Any]]


class Gather:
    """Copies rows by their number over all files.

    maps: rows of each file in order, all of one dtype; at least one file.

    dtype: of the rows.
    counts: rows of each file.
    """

    def __init__(self, maps: Sequence[Rows]) -> None:
        self.dtype = maps[0].dtype
        self.counts = tuple(len(rows) for rows in maps)
        # np.take copies an opaque row at once, and a structured row field by field
        # (bench/macroxue_pools.py).
        self._opaque = np.dtype((np.void, self.dtype.itemsize))
        self._maps = [rows.view(self._opaque) for rows in maps]
        self._firsts = np.cumsum([0, *self.counts])
        full, last = self.counts[0], self.counts[-1]
        even = all(count == full for count in self.counts[:-1]) and last <= full
        self._even = full if even else 0

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def rows(self, indices: Indices) -> Rows:
        """Rows [N] as a new array.

        indices: row numbers [N] from 0, in any order.

        Raises IndexError for a number outside the files, TypeError for anything but integers.
        """
        numbers = numbers_of(indices, len(self), "row", from_end=False)
        out = np.empty(len(numbers), self._opaque)
        if len(numbers) == 0:
            return out.view(self.dtype)
        if len(self._maps) == 1:
            np.take(self._maps[0], numbers, out=out, mode="clip")
        else:
            self._take_from_files(numbers, out)
        return out.view(self.dtype)

    def _take_from_files(self, numbers: npt.NDArray[np.int64], out: npt.NDArray[np.void]) -> None:
        """Copy rows of several files to `out`, file by file."""
        if self._even:
            files = numbers // self._even
        else:
            files = np.searchsorted(self._firsts, numbers, "right") - 1
        # A stable sort of 16-bit numbers is a radix sort.
        small = files.astype(np.uint16) if len(self._maps) <= 1 << 16 else files
        order = np.argsort(small, kind="stable")
        cuts = np.searchsorted(files[order], np.arange(len(self._maps) + 1))
        ordered, copied = numbers[order], np.empty_like(out)
        for file in np.flatnonzero(np.diff(cuts)).tolist():
            rows = slice(cuts[file], cuts[file + 1])
            within = ordered[rows] - self._firsts[file]
            np.take(self._maps[file], within, out=copied[rows], mode="clip")
        out[order] = copied
