"""What is wrong with many Sudokus at once. Source: docs/formats/puzzles.md#sudoku-findings."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call,assignment"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.run.kernels import kernel

INPUT_VOCAB, LABEL_VOCAB, CLUES, DIGIT, UNITS = 1, 2, 4, 8, 16
"""Kinds of findings, as bits of a row."""
_LEAST: Final = 1
_MOST: Final = 10


@njit
def _units_hold(label, bits, columns):
    """Whether each row, column and box of labels in 2 to 10 holds each digit once."""
    for cell in range(81):
        bits[cell] = np.int32(1) << np.int32(label[cell])
    columns[:] = 0
    held = 0x7FC
    for band in range(0, 81, 27):
        for k in range(9):
            columns[k] |= bits[band + k] | bits[band + 9 + k] | bits[band + 18 + k]
        for first in range(band, band + 27, 9):
            row = 0
            for k in range(first, first + 9):
                row |= bits[k]
            held &= row
        for first in range(band, band + 9, 3):
            box = 0
            for k in range(3):
                box |= bits[first + k] | bits[first + 9 + k] | bits[first + 18 + k]
            held &= box
    for k in range(9):
        held &= columns[k]
    return held == 0x7FC


@njit
def _cells(given, label):
    """Findings of single cells, and the number of clues; without branches, so that it is fast."""
    given_wrong = label_wrong = clue_wrong = blank = count = 0
    for cell in range(81):
        asked: Any = np.int32(given[cell])
        solved: Any = np.int32(label[cell])
        clue = (asked > _LEAST) & (asked <= _MOST)
        given_wrong |= (asked < _LEAST) | (asked > _MOST)
        label_wrong |= (solved < _LEAST) | (solved > _MOST)
        blank |= solved == _LEAST
        clue_wrong |= clue & (asked != solved)
        count += clue
    found = INPUT_VOCAB * given_wrong + LABEL_VOCAB * label_wrong + CLUES * clue_wrong
    return found + DIGIT * blank, count


@kernel(nogil=True)
def check(inputs, labels, findings, clues):
    """Note what is wrong with each row, and count its clues.

    inputs, labels: tokens, [rows, 81]. findings: uint8 [rows], set to bits; 0 for a good row.
    clues: int32 [rows], set to the number of clues.
    """
    bits, columns = np.empty(81, np.int32), np.empty(9, np.int32)
    for row in range(inputs.shape[0]):
        found, count = _cells(inputs[row], labels[row])
        if found & (LABEL_VOCAB | DIGIT) == 0 and not _units_hold(labels[row], bits, columns):
            found |= UNITS
        findings[row] = found
        clues[row] = count


def described(given: npt.NDArray[Any], label: npt.NDArray[Any]) -> Iterator[str]:
    """Yield the names of what is wrong with one example.

    `row_dup_r`, `col_dup_c` and `box_dup_r_c` count rows, columns and boxes from 0.
    """
    if given.shape != (81,) or label.shape != (81,):
        yield "seq_len_mismatch"
        return
    if ((given < 1) | (given > _MOST)).any():
        yield "input_out_of_vocab"
    if ((label < 1) | (label > _MOST)).any():
        yield "label_out_of_vocab"
    if ((given > 1) & (given != label)).any():
        yield "clue_mismatch"
    if ((label < 2) | (label > _MOST)).any():
        yield "label_digit_out_of_range"
    grid = np.asarray(label).reshape(9, 9)
    for unit in range(9):
        if _repeats(grid[unit]):
            yield f"row_dup_{unit}"
        if _repeats(grid[:, unit]):
            yield f"col_dup_{unit}"
        row, column = 3 * (unit // 3), 3 * (unit % 3)
        if _repeats(grid[row : row + 3, column : column + 3]):
            yield f"box_dup_{unit // 3}_{unit % 3}"


def _repeats(cells: npt.NDArray[Any]) -> bool:
    filled = cells[cells > 1]
    return len(np.unique(filled)) != len(filled)
