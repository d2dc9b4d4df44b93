"""Augmentations of Sudokus, drawn once more: each must be what its draw makes of its source.

The rules of single rows: `sudoku.py`. The compiled part: `sudoku_kernels.py`.
Source: docs/formats/puzzles.md#sudoku-findings
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.domains.sudoku.board import text_of
from gristmill.puzzles.domains.sudoku.symmetry import key_of
from gristmill.puzzles.read.rows import Rows, SetArrays

_Bools = npt.NDArray[np.bool_]
_Marks = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Batch:
    """Rows of a set, and the sources of their groups.

    rows: as read. first: number of the first group, whose source may be in an earlier batch.
    inputs, labels: of the sources, [sources, 81].
    place: int64 [rows], the place of each row's source among them.
    is_source: bool [rows].
    """

    rows: Rows
    first: int
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    place: npt.NDArray[np.int64]
    is_source: _Bools

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
        return cls(rows, first, given, solved, place, own[place] == here)


class Redraws:
    """The augmentations of one set.

    arrays: of the set. sources: int64 [groups], the first row of each group.
    seed: of the build; None where it is not known: nothing is drawn.
    """

    def __init__(self, arrays: SetArrays, sources: npt.NDArray[np.int64], seed: int | None) -> None:
        self._arrays, self._sources = arrays, sources
        self._seed = seed if arrays.origins is not None else None
        self._open = np.empty(0, np.int64), np.empty(0, np.uint64)

    @property
    def is_known(self) -> bool:
        """Whether draws can be made once more."""
        return self._seed is not None

    def compared(
        self, batch: Batch, inputs: npt.NDArray[Any], labels: npt.NDArray[Any]
    ) -> tuple[_Bools, _Marks]:
        """Which rows are not proven to be what their draws make, and the mark of each row.

        inputs, labels: of the batch, uint8 or int32 [rows, 81].

        A mark is a hash of group and example, 0 for rows that are not proven. There are none where
        the batch has sources alone, or draws are not known; then no augmentation is proven.
        """
        from gristmill.puzzles.laws.sudoku_kernels import CLUE, compare

        origins = self._arrays.origins
        if self._seed is None or origins is None or batch.is_source.all():
            return ~batch.is_source, np.empty(0, np.uint64)
        given, solved = (
            (np.clip(tokens, 1, 10) - 1).astype(np.uint8) for tokens in (batch.inputs, batch.labels)
        )
        # A source without augmentations here needs no key.
        used = set(batch.place[~batch.is_source].tolist())
        keys = [
            key_of(self._seed, text_of(board)) if number in used else 0
            for number, board in enumerate(given)
        ]
        first, count = batch.rows.first, len(inputs)
        draws = np.array(origins[first : first + count, 2], np.int64)
        packed = solved | np.where(given > 0, np.uint8(CLUE), np.uint8(0))
        groups = np.arange(batch.first, batch.first + len(given), dtype=np.uint64)
        wrong, marks = np.empty(count, np.bool_), np.empty(count, np.uint64)
        sources = batch.place, packed, np.array(keys, np.uint64), groups
        compare(inputs, labels, draws, batch.is_source, *sources, wrong, marks)
        marks[wrong] = 0
        return wrong & ~batch.is_source, marks

    def repeated(self, first: int, marks: _Marks) -> Iterator[tuple[int, int]]:
        """Yield each row that an earlier one of its group equals, and the number of that row.

        first: number of the first row of a batch. marks: of its rows, from `compared`. Batches
            come in their order: rows of a group that goes on are kept for the next one.
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
                example = b"".join(
                    np.asarray(of[row]).tobytes()
                    for of in (self._arrays.inputs, self._arrays.labels)
                )
                if (other := seen.setdefault(example, row)) != row and row >= first:
                    yield row, other
