"""Symmetries of Sudoku: relabelled digits, moved bands, rows, stacks and columns, transposition.

They form a group, and each leaves a Sudoku's rules, its clues and its number of solutions as they
are. An augmentation is a symmetry that the seed draws; `augment.py` applies many.
Source: docs/formats/puzzles.md#sudoku-augmentation
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains import randomness
from gristmill.puzzles.domains.source_key import source_key
from gristmill.puzzles.domains.sudoku.board import KIND
from gristmill.run.kernels import kernel


@njit
def _exchange(items, place, other):
    kept = items[place]
    items[place] = items[other]
    items[other] = kept


@njit
def _shuffle_three(state, items, first):
    """`randomness.shuffle` of three items; bounds that the compiler knows need no division."""
    _exchange(items, first + 2, first + randomness.below(state, 3))
    _exchange(items, first + 1, first + randomness.below(state, 2))


@njit
def _shuffle_digits(state, digits):
    """`randomness.shuffle` of digits[1:], nine items."""
    _exchange(digits, 9, 1 + randomness.below(state, 9))
    _exchange(digits, 8, 1 + randomness.below(state, 8))
    _exchange(digits, 7, 1 + randomness.below(state, 7))
    _exchange(digits, 6, 1 + randomness.below(state, 6))
    _exchange(digits, 5, 1 + randomness.below(state, 5))
    _exchange(digits, 4, 1 + randomness.below(state, 4))
    _shuffle_three(state, digits, 1)


@njit
def _draw_lines(state, lines):
    """Draw the order of nine rows or columns: of the bands, then of the lines in each."""
    for k in range(3):
        lines[k] = 3 * k
    _shuffle_three(state, lines, 0)
    second, third = lines[1], lines[2]
    for k in range(3):
        lines[3 + k] = second + k
        lines[6 + k] = third + k
    lines[1] = lines[0] + 1
    lines[2] = lines[0] + 2
    for band in range(0, 9, 3):
        _shuffle_three(state, lines, band)


@njit
def draw(state, key, number, digits, rows, columns):
    """Draw a symmetry; returns whether it transposes.

    state: uint64 [1], scratch. key: of the source, uint64. number: of the draw.
    digits: uint8 [10], rows, columns: int64 [9], all set; see `Symmetry`.
    """
    randomness.start(state, key, number)
    for k in range(10):
        digits[k] = k
    _shuffle_digits(state, digits)
    transposes = randomness.below(state, 2) == 1
    _draw_lines(state, rows)
    _draw_lines(state, columns)
    return transposes


@kernel(nogil=True)
def _drawn(key, number, digits, rows, columns):
    """Draw a symmetry with scratch of its own; else as `draw`."""
    return draw(np.zeros(1, np.uint64), np.uint64(key), number, digits, rows, columns)


@dataclass(frozen=True)
class Symmetry:
    """One symmetry.

    transposes: whether the board is transposed first.
    rows, columns: nine numbers: cell (i, j) comes from cell (rows[i], columns[j]).
    digits: ten numbers: digit d becomes digits[d]; 0 stays 0.

    Raises ValueError for numbers that are no symmetry.
    """

    transposes: bool
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    digits: tuple[int, ...]

    def __post_init__(self) -> None:
        for lines in (self.rows, self.columns):
            bands = [{line // 3 for line in lines[k : k + 3]} for k in (0, 3, 6)]
            if sorted(lines) != [*range(9)] or any(len(band) > 1 for band in bands):
                raise ValueError(f"{lines} does not keep bands together")
        if self.digits[0] != 0 or sorted(self.digits) != [*range(10)]:
            raise ValueError(f"{self.digits} is no relabelling of the digits")

    def apply(self, board: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The board after the symmetry; uint8 [81]."""
        grid = board.reshape(9, 9)
        grid = grid.T if self.transposes else grid
        moved = grid[np.ix_(self.rows, self.columns)]
        return np.array(self.digits, np.uint8)[moved].reshape(81)

    def after(self, first: Symmetry) -> Symmetry:
        """The symmetry that applies `first`, then this one."""
        inner = (first.columns, first.rows) if self.transposes else (first.rows, first.columns)
        return Symmetry(
            self.transposes != first.transposes,
            tuple(inner[0][line] for line in self.rows),
            tuple(inner[1][line] for line in self.columns),
            tuple(self.digits[digit] for digit in first.digits),
        )

    def inverse(self) -> Symmetry:
        """The symmetry that undoes this one."""
        rows, columns = _inverse(self.rows), _inverse(self.columns)
        if self.transposes:
            rows, columns = columns, rows
        return Symmetry(self.transposes, rows, columns, _inverse(self.digits))


def _inverse(places: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(np.argsort(places).tolist())


def key_of(seed: int, question: str) -> int:
    """The key of a source's draws.

    seed: of the build. question: 81 digits, blanks as 0.
    """
    return source_key(seed, KIND, question)


def augmentation(seed: int, question: str, number: int) -> Symmetry:
    """The symmetry that draw `number` of a source gives.

    seed: of the build. question: 81 digits, blanks as 0. number: from 1; 0 is the source itself.
    """
    if number == 0:
        lines = tuple(range(9))
        return Symmetry(False, lines, lines, tuple(range(10)))
    digits = np.empty(10, np.uint8)
    rows, columns = np.empty(9, np.int64), np.empty(9, np.int64)
    transposes = _drawn(np.uint64(key_of(seed, question)), number, digits, rows, columns)
    moved = (tuple(rows.tolist()), tuple(columns.tolist()))
    return Symmetry(bool(transposes), *moved, tuple(digits.tolist()))
