"""Which number each record of a normalised file has, by which its id names it.

Source: `docs/formats/reasoning.md#numbers`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.reasoning.format.index import mapped
from gristmill.untrusted.npy_header import npy_header

Ints = npt.NDArray[np.int64]


def path_of(jsonl: Path) -> Path:
    """The file of the numbers of a normalised file, which is there where they have gaps."""
    return jsonl.with_suffix(".numbers.npy")


def free(taken: Collection[int], records: int) -> Ints:
    """The first numbers from 0, int64 [records], without those that are taken."""
    left = np.ones(records + len(taken), bool)
    left[[number for number in taken if number < len(left)]] = False
    return np.flatnonzero(left)[:records]


def write(jsonl: Path, taken: Collection[int], records: int) -> bool:
    """Write the numbers of a normalised file where they have gaps; returns whether they have."""
    numbers = free(taken, records)
    if not records or numbers[-1] == records - 1:
        return False
    path_of(jsonl).write_bytes(npy_header("<i8", numbers.shape) + numbers.astype("<i8").tobytes())
    return True


class Numbers:
    """The numbers of the records of a normalised file; a place counts the records before.

    jsonl: the file. Its numbers are mapped into memory. Raises BadInput where they are damaged.
    """

    def __init__(self, jsonl: Path) -> None:
        path = path_of(jsonl)
        self._path = path
        self._gaps: Ints | None = mapped(path, ()) if path.exists() else None

    def of(self, place: int) -> int:
        """The number of a record; behind the last one they have no gaps."""
        if self._gaps is None:
            return place
        count = len(self._gaps)
        return int(self._gaps[place] if place < count else self._gaps[-1] + 1 + place - count)

    def place(self, number: int) -> int | None:
        """The place of a record; None for a number that a forgotten row had."""
        if self._gaps is None:
            return number
        place = int(np.searchsorted(self._gaps, number))
        return place if self.of(place) == number else None

    def between(self, first: int, stop: int) -> Ints:
        """The numbers of consecutive records, int64 [stop - first]. first, stop: places."""
        return np.arange(first, stop) if self._gaps is None else self._gaps[first:stop]

    def check(self, records: int) -> None:
        """Raise BadInput unless there are so many numbers as records."""
        if self._gaps is not None and len(self._gaps) != records:
            rule = f"has {len(self._gaps)} numbers of {records} records: build the partition again"
            raise BadInput(self._path, rule)
