"""Rows of several mapped npy files as one column that is indexed at random.

What the rows mean is the business of `reader.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.rows import Rows

Indices = npt.NDArray[np.integer[Any]]


def row_numbers(numbers: Indices) -> npt.NDArray[np.int64]:
    """Row numbers [N] as int64. TypeError for what is none, such as a mask of booleans."""
    given = np.asarray(numbers)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"row numbers are integers, not {given.dtype}: np.flatnonzero of a mask")
    return given.astype(np.int64, copy=False)


class Gather:
    """Copies rows out of maps by global number. maps: rows of one dtype, in order.

    np.take of opaque items copies each row in one piece, where indexing a
    structured array goes field by field (bench/macroxue_pools.py).
    """

    def __init__(self, maps: Sequence[Rows]) -> None:
        self.dtype = maps[0].dtype
        self.counts = tuple(len(rows) for rows in maps)
        self._opaque = np.dtype((np.void, self.dtype.itemsize))
        self._maps = [rows.view(self._opaque) for rows in maps]
        self._firsts = np.cumsum([0, *self.counts])
        full, last = self.counts[0], self.counts[-1]
        even = all(count == full for count in self.counts[:-1]) and last <= full
        self._even = full if even else 0

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def rows(self, indices: Indices) -> Rows:
        """Rows [N] as a new array, in the order of `indices` [N]; IndexError outside 0..len-1."""
        places = row_numbers(indices)
        out = np.empty(len(places), self._opaque)
        if len(places) == 0:
            return out.view(self.dtype)
        if int(places.min()) < 0 or int(places.max()) >= len(self):
            wrong = places[(places < 0) | (places >= len(self))][0]
            raise IndexError(f"row {wrong} of a pack with {len(self)} rows")
        if len(self._maps) == 1:
            np.take(self._maps[0], places, out=out, mode="clip")
            return out.view(self.dtype)
        if self._even:
            files = places // self._even
        else:
            files = np.searchsorted(self._firsts, places, "right") - 1
        # A stable sort of 16-bit numbers is a radix sort.
        small = files.astype(np.uint16) if len(self._maps) <= 1 << 16 else files
        order = np.argsort(small, kind="stable")
        cuts = np.searchsorted(files[order], np.arange(len(self._maps) + 1))
        sorted_places, together = places[order], np.empty_like(out)
        for file in np.flatnonzero(np.diff(cuts)).tolist():
            part = slice(cuts[file], cuts[file + 1])
            within = sorted_places[part] - self._firsts[file]
            np.take(self._maps[file], within, out=together[part], mode="clip")
        out[order] = together
        return out.view(self.dtype)
