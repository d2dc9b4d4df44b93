"""Solutions of a Sudoku, counted up to two by a compiled search.

The search fills cells with one candidate and digits with one cell of a row, column or box, then
guesses in a cell with the fewest candidates. Its steps are bounded, since a hostile board could
keep it busy for years. Source: docs/formats/puzzles.md#uniqueness
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

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
    """Solve boards.

    boards: uint8 [rows, 81], digits, 0 for a blank. most: solutions to count at most.
    solutions: uint8 [rows, 81], set to the first solution where there is one.
    counts: int64 [rows], set to the number of solutions, GAVE_UP where the search took too long.
    guesses: int64 [rows], set to the guesses that the search took.
    """
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
    """Returns (first solution, number of solutions, guesses) of each board.

    boards: uint8 [rows, 81]. most: solutions to count at most, default 2.

    uint8 [rows, 81], zeros where there is none; int64 [rows], GAVE_UP for a board that takes more
    than MOST_GUESSES guesses; int64 [rows].
    """
    found = np.zeros_like(boards)
    counts, guesses = np.zeros(len(boards), np.int64), np.zeros(len(boards), np.int64)
    solve(np.ascontiguousarray(boards), most, found, counts, guesses)
    return found, counts, guesses
