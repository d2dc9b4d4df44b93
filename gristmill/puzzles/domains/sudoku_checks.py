"""What is wrong with Sudokus, and their solutions, counted up to two by a compiled search.

The search fills cells with one candidate and digits with one cell of a row, column or box, then
guesses in a cell with the fewest candidates. Its steps are bounded, since a hostile board could
keep it busy for years.
Source: docs/formats/puzzles.md#sudoku-findings, docs/formats/puzzles.md#uniqueness
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call,assignment"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.run.kernels import kernel

MOST_GUESSES: Final = 2_000_000
"""Guesses after which a board counts as one that cannot be solved in time."""
GAVE_UP: Final = -1

_ALL = 0x1FF


def _tables() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    units = np.array(
        [[9 * u + k for k in range(9)] for u in range(9)]
        + [[9 * k + u for k in range(9)] for u in range(9)]
        + [[27 * (u // 3) + 3 * (u % 3) + 9 * (k // 3) + k % 3 for k in range(9)] for u in range(9)]
    )
    peers = np.array(
        [sorted({c for unit in units if cell in unit for c in unit} - {cell}) for cell in range(81)]
    )
    counts = np.array([value.bit_count() for value in range(512)])
    return units, peers, counts


_UNITS, _PEERS, _COUNTS = _tables()


@njit
def _place(candidates, open_cells, cell, digit):
    """Fill a cell; False where a peer is left without a candidate."""
    candidates[cell] = digit
    open_cells[cell] = 0
    for k in range(20):
        peer = _PEERS[cell, k]
        if candidates[peer] & digit:
            candidates[peer] &= ~digit
            if candidates[peer] == 0:
                return False
    return True


@njit
def _fill_single_cells(candidates, open_cells):
    """Fill cells with one candidate; 1 where some were, 0 where none, -1 at a contradiction."""
    changed = 0
    for cell in range(81):
        if open_cells[cell] and _COUNTS[candidates[cell]] == 1:
            if not _place(candidates, open_cells, cell, candidates[cell]):
                return -1
            changed = 1
    return changed


@njit
def _fill_single_digits(candidates, open_cells):
    """Fill digits with one cell in a unit; result as of `_fill_single_cells`."""
    changed = 0
    for unit in range(27):
        once = twice = 0
        for k in range(9):
            here = candidates[_UNITS[unit, k]]
            twice |= once & here
            once |= here
        if once != _ALL:
            return -1
        once &= ~twice
        for k in range(9):
            cell = _UNITS[unit, k]
            digit = once & candidates[cell]
            if digit and open_cells[cell]:
                if _COUNTS[digit] > 1 or not _place(candidates, open_cells, cell, digit):
                    return -1
                changed = 1
    return changed


@njit
def _propagate(candidates, open_cells):
    """Fill all that follows; False at a contradiction."""
    while True:
        changed = _fill_single_cells(candidates, open_cells)
        if changed == 0:
            changed = _fill_single_digits(candidates, open_cells)
        if changed <= 0:
            return changed == 0


@njit
def _guess_cell(candidates, open_cells):
    """An open cell with the fewest candidates, -1 where none is open."""
    chosen, fewest = -1, 10
    for cell in range(81):
        if open_cells[cell] and _COUNTS[candidates[cell]] < fewest:
            chosen, fewest = cell, _COUNTS[candidates[cell]]
            if fewest == 2:
                break
    return chosen


@njit
def _set_up(board, candidates, open_cells):
    candidates[0, :] = _ALL
    open_cells[0, :] = 1
    for cell in range(81):
        if board[cell]:
            digit = 1 << (board[cell] - 1)
            if not candidates[0, cell] & digit:
                return False
            if not _place(candidates[0], open_cells[0], cell, digit):
                return False
    return True


@njit
def _digit_of(mask):
    digit = 1
    while mask > 1:
        mask >>= 1
        digit += 1
    return digit


@njit
def _solve(board, most, solution, candidates, open_cells, untried):
    """Solutions of a board, at most `most` of them, and the guesses; see `solve`."""
    count = guesses = depth = 0
    if not _set_up(board, candidates, open_cells):
        return 0, 0
    untried[0] = -1
    entered = True
    while depth >= 0:
        if entered:
            cell = -2
            if _propagate(candidates[depth], open_cells[depth]):
                cell = _guess_cell(candidates[depth], open_cells[depth])
            if cell == -1:
                if count == 0:
                    for k in range(81):
                        solution[k] = _digit_of(candidates[depth, k])
                count += 1
                if count >= most:
                    return count, guesses
            untried[depth] = cell
        cell = untried[depth]
        if cell < 0 or candidates[depth, cell] == 0:
            depth -= 1
            entered = False
            continue
        guesses += 1
        if guesses > MOST_GUESSES:
            return GAVE_UP, guesses
        digit = candidates[depth, cell] & -candidates[depth, cell]
        candidates[depth + 1] = candidates[depth]
        open_cells[depth + 1] = open_cells[depth]
        candidates[depth, cell] &= ~digit
        depth += 1
        entered = True
        if not _place(candidates[depth], open_cells[depth], cell, digit):
            untried[depth] = -1
            entered = False
    return count, guesses


@kernel(nogil=True)
def solve(boards, most, solutions, counts, guesses):
    """Set the first solution, their number up to `most` or GAVE_UP, and guesses of boards."""
    candidates = np.empty((82, 81), np.int64)
    open_cells = np.empty((82, 81), np.int64)
    untried = np.empty(82, np.int64)
    for row in range(boards.shape[0]):
        counts[row], guesses[row] = _solve(
            boards[row], most, solutions[row], candidates, open_cells, untried
        )


def solutions_of(
    boards: npt.NDArray[np.uint8], most: int = 2
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns the first solution or zeros, their number or GAVE_UP, and guesses of boards."""
    found = np.zeros_like(boards)
    counts, guesses = np.zeros(len(boards), np.int64), np.zeros(len(boards), np.int64)
    solve(np.ascontiguousarray(boards), most, found, counts, guesses)
    return found, counts, guesses


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
    """Note what is wrong with each row of tokens, as bits, and count its clues."""
    bits, columns = np.empty(81, np.int32), np.empty(9, np.int32)
    for row in range(inputs.shape[0]):
        found, count = _cells(inputs[row], labels[row])
        if found & (LABEL_VOCAB | DIGIT) == 0 and not _units_hold(labels[row], bits, columns):
            found |= UNITS
        findings[row] = found
        clues[row] = count


def described(given: npt.NDArray[Any], label: npt.NDArray[Any]) -> Iterator[str]:
    """Yield the names of what is wrong with one example; rows, columns and boxes count from 0."""
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
