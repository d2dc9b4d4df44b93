"""Augmentations of Sudokus, drawn once more: each must be what its draw makes of its source.

Of the code that writes examples it shares the draw alone.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains import randomness
from gristmill.puzzles.domains.sudoku_board import text_of
from gristmill.puzzles.domains.sudoku_symmetry import draw, key_of
from gristmill.puzzles.laws.groups import Batch, Bools, Marks, Repeats
from gristmill.puzzles.read.rows import SetArrays
from gristmill.run.kernels import kernel

CLUE: Final = 16
"""Bit of a packed cell, a digit of the label: the cell is a clue."""
_MARKED: Final = 27
_WEIGHTS = np.array([pow(5, 2 * k + 41, 1 << 64) for k in range(_MARKED)], np.uint64)


class Redraws:
    """The augmentations of one set.

    arrays: of the set. sources: int64 [groups], the first row of each group.
    seed: of the build; None where it is not known: nothing is drawn.
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


@njit
def _differs(given, label, made):
    """Whether an example has another cell than the packed tokens in `made`."""
    found = np.int32(0)
    for cell in range(81):
        packed = np.int32(made[cell])
        token = np.int32(label[cell])
        found |= (packed & 15) ^ token
        found |= (token if packed & 128 else 1) ^ np.int32(given[cell])
    return found != 0


@njit
def _mark(group, made):
    """A hash of the group, and of the first three rows of an example."""
    total = np.uint64(0)
    for cell in range(_MARKED):
        total += _WEIGHTS[cell] * np.uint64(made[cell])
    return randomness.mixed(total ^ randomness.mixed(group))


@kernel(nogil=True)
def compare(inputs, labels, draws, is_source, place, packed, keys, groups, wrong, marks):
    """Note the rows that are not what their draws make of their sources.

    inputs, labels: tokens, [rows, 81]. draws: int64 [rows]. is_source: bool [rows].
    place: int64 [rows], the place of the source in: packed, uint8 [sources, 81], digits of the
        label, and CLUE; keys, groups, uint64 [sources], of the draws, and the number of the group.
    wrong: bool [rows], set. marks: uint64 [rows], set to a hash of group and example.
    """
    state, table, made = np.zeros(1, np.uint64), np.empty(32, np.uint8), np.empty(81, np.uint8)
    digits, rows, columns = np.empty(10, np.uint8), np.arange(9), np.arange(9)
    for row in range(inputs.shape[0]):
        source = place[row]
        down, across = 9, 1
        if is_source[row]:
            for k in range(10):
                digits[k] = k
            rows[:], columns[:] = np.arange(9), np.arange(9)
        elif draw(state, keys[source], draws[row], digits, rows, columns):
            down, across = 1, 9
        for k in range(10):
            table[k] = digits[k] + 1
            table[CLUE + k] = digits[k] + 129
        board = packed[source]
        for j in range(9):
            columns[j] *= across
        for i in range(9):
            start = rows[i] * down
            for j in range(9):
                made[9 * i + j] = table[board[np.uint64(start + columns[j])]]
        wrong[row] = _differs(inputs[row], labels[row], made)
        marks[row] = _mark(groups[source], made)
