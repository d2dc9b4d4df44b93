"""Groups of a set as laws look at them: the source of each row, and rows that a group has twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.read.rows import Rows, SetArrays

Bools = npt.NDArray[np.bool_]
Marks = npt.NDArray[np.uint64]
"""A hash of group and example for each row; 0 says nothing of a row."""


@dataclass(frozen=True)
class Batch:
    """Rows of a set, and the sources of their groups.

    rows: as read. first: number of the first group, whose source may be in an earlier batch.
    sources: int64 [sources], the numbers of their rows. inputs, labels: [sources, seq_len].
    place: int64 [rows], the place of each row's source among them.
    is_source: bool [rows].
    """

    rows: Rows
    first: int
    sources: npt.NDArray[np.int64]
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    place: npt.NDArray[np.int64]
    is_source: Bools

    @classmethod
    def of(cls, rows: Rows, arrays: SetArrays, sources: npt.NDArray[np.int64]) -> Batch:
        """The batch of some rows. sources: the first row of each group of the set."""
        here = np.arange(rows.first, rows.first + len(rows.inputs))
        first = max(0, int(np.searchsorted(sources, rows.first, "right")) - 1)
        after = max(first + 1, int(np.searchsorted(sources, here[-1], "right")))
        own = sources[first:after]
        place = np.maximum(0, np.searchsorted(own, here, "right") - 1)
        earlier = own[own < rows.first]
        later = own[len(earlier) :] - rows.first
        given, solved = (
            np.concatenate([np.asarray(mapped[earlier]), read[later]])
            for mapped, read in ((arrays.inputs, rows.inputs), (arrays.labels, rows.labels))
        )
        return cls(rows, first, own, given, solved, place, own[place] == here)

    @property
    def groups(self) -> npt.NDArray[np.uint64]:
        """The numbers of the groups of the sources, uint64 [sources]."""
        return np.arange(self.first, self.first + len(self.sources), dtype=np.uint64)


class Repeats:
    """Rows that an earlier row of their group equals.

    tokens: the arrays that decide, [examples, seq_len]. sources: the first row of each group.
    """

    def __init__(
        self, tokens: tuple[npt.NDArray[Any], ...], sources: npt.NDArray[np.int64]
    ) -> None:
        self._tokens, self._sources = tokens, sources
        self._open = np.empty(0, np.int64), np.empty(0, np.uint64)

    def of(self, first: int, marks: Marks) -> Iterator[tuple[int, int]]:
        """Yield each row that repeats one, and the number of the first of them.

        first: number of the first row of a batch. marks: of its rows; none where nothing can be
            said of the batch. Batches come in their order: the rows of a group that goes on are
            kept for the next one.
        """
        if not len(marks):
            return
        rows = np.concatenate([self._open[0], np.arange(first, first + len(marks))])
        known = np.concatenate([self._open[1], marks])
        last = self._sources[max(0, int(np.searchsorted(self._sources, rows[-1], "right")) - 1)]
        self._open = rows[rows >= last], known[rows >= last]
        ordered = np.sort(known[known > 0])
        again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        for mark in again.tolist():
            seen: dict[bytes, int] = {}
            for row in rows[known == mark].tolist():
                example = b"".join(np.asarray(of[row]).tobytes() for of in self._tokens)
                if (other := seen.setdefault(example, row)) != row and row >= first:
                    yield row, other


def narrow(tokens: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Tokens in a type that the compiled checks know; no wrong value becomes a valid one."""
    if tokens.dtype in (np.uint8, np.int32):
        return tokens
    narrowed: npt.NDArray[np.int32] = np.clip(tokens, -1, 127).astype(np.int32)
    return narrowed
