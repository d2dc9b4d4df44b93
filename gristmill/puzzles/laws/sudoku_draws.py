"""Augmentations of Sudokus, drawn once more: each must be what its draw makes of its source.

The rules of single rows: `sudoku.py`. The compiled part: `sudoku_kernels.py`.
Source: docs/formats/puzzles.md#sudoku-findings
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.domains.sudoku.board import text_of
from gristmill.puzzles.domains.sudoku.symmetry import key_of
from gristmill.puzzles.laws.groups import Batch, Bools, Marks, Repeats
from gristmill.puzzles.read.rows import SetArrays


class Redraws:
    """The augmentations of one set.

    arrays: of the set. sources: int64 [groups], the first row of each group.
    seed: of the build; None where it is not known: nothing is drawn.
    repeats: of examples in a group, by the marks of `compared`.
    """

    def __init__(self, arrays: SetArrays, sources: npt.NDArray[np.int64], seed: int | None) -> None:
        self._arrays = arrays
        self._seed = seed if arrays.origins is not None else None
        self.repeats = Repeats((arrays.inputs, arrays.labels), sources)

    @property
    def is_known(self) -> bool:
        """Whether draws can be made once more."""
        return self._seed is not None

    def compared(
        self, batch: Batch, inputs: npt.NDArray[Any], labels: npt.NDArray[Any]
    ) -> tuple[Bools, Marks]:
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
        wrong, marks = np.empty(count, np.bool_), np.empty(count, np.uint64)
        sources = batch.place, packed, np.array(keys, np.uint64), batch.groups
        compare(inputs, labels, draws, batch.is_source, *sources, wrong, marks)
        marks[wrong] = 0
        return wrong & ~batch.is_source, marks
