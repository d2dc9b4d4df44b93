"""When two Sudokus are the same up to symmetry: a fast invariant, and the canonical form.

Twins have the same invariant, and boards with the same invariant nearly always are twins; the
canonical form, which is slower, decides. Source: docs/formats/puzzles.md#canonical-form
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains.randomness import mixed
from gristmill.run.kernels import kernel

_ROUNDS = 3
_BOX, _DIGIT, _BAND, _OWN = (
    np.uint64(word)
    for word in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)
)
_ZERO = np.uint64(0)


@njit
def _refine(board, lines, boxes, digits, sums):
    """Give each line, box and digit a colour by the colours of the clues in it.

    lines: uint64 [18], rows and then columns, which transposition exchanges: nothing here tells
        one from the other.
    """
    sums[:] = _ZERO
    for cell in range(81):
        if board[cell] > 0:
            row, column, digit = cell // 9, cell % 9, board[cell] - 1
            box = row // 3 * 3 + column // 3
            clue = lines[row] + lines[9 + column] + _BOX * boxes[box] + _DIGIT * digits[digit]
            clue = mixed(clue)
            sums[row] += clue
            sums[9 + column] += clue
            sums[18 + box] += clue
            sums[27 + digit] += clue
    for line in range(18):
        lines[line] = mixed(sums[line] + _OWN * lines[line])
        sums[line] = _ZERO
    for line in range(18):
        sums[line // 3] += lines[line]
    for line in range(18):
        lines[line] = mixed(lines[line] + _BAND * sums[line // 3])
    for k in range(9):
        crossing = mixed(sums[k // 3]) + mixed(sums[3 + k % 3])
        boxes[k] = mixed(sums[18 + k] + _BAND * crossing + _OWN * boxes[k])
        digits[k] = mixed(sums[27 + k] + _OWN * digits[k])


@kernel(nogil=True)
def _set_invariants(boards, out):
    lines, sums = np.empty(18, np.uint64), np.empty(36, np.uint64)
    boxes, digits = np.empty(9, np.uint64), np.empty(9, np.uint64)
    for row in range(boards.shape[0]):
        lines[:] = _OWN
        boxes[:] = _OWN
        digits[:] = _OWN
        for _ in range(_ROUNDS):
            _refine(boards[row], lines, boxes, digits, sums)
        total = _ZERO
        for k in range(9):
            total += mixed(lines[k]) + mixed(lines[9 + k])
            total += mixed(boxes[k] ^ _BOX) + mixed(digits[k] ^ _DIGIT)
        out[row] = mixed(total)


def invariants(boards: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """A number for each board that no symmetry changes, uint64 [rows].

    boards: uint8 [rows, 81], digits, 0 for a blank.
    """
    out = np.empty(len(boards), np.uint64)
    _set_invariants(np.ascontiguousarray(boards), out)
    return out


_ORDERS = np.array(
    [
        [3 * band + line for band, inner in zip(bands, inners, strict=True) for line in inner]
        for bands in permutations(range(3))
        for inners in product(permutations(range(3)), repeat=3)
    ],
    np.int64,
)
"""The 1,296 orders of nine columns that keep stacks together."""


@njit
def _is_repeated(order, empty):
    """Whether another order differs in blank columns alone, and comes first."""
    for k in range(9):
        if k % 3 < 2 and empty[order[k]] and empty[order[k + 1]] and order[k] > order[k + 1]:
            return True
    for k in (0, 3):
        a, b = order[k] // 3 * 3, order[k + 3] // 3 * 3
        blank = empty[a] and empty[a + 1] and empty[a + 2]
        if blank and empty[b] and empty[b + 1] and empty[b + 2] and a > b:
            return True
    return False


@njit
def _may_follow(row, depth, rows, used, empty):
    """Whether a row may come next: of the same band within it, and the first of blank ones."""
    if used >> row & 1:
        return False
    band = row // 3
    if depth % 3 and rows[depth - 1] // 3 != band:
        return False
    if depth % 3 == 0 and used >> (3 * band) & 7:
        return False
    if empty[row]:
        for other in range(3 * band, row):
            if empty[other] and not used >> other & 1:
                return False
    return True


@njit
def _relabel(grid, row, order, labels, depth, out, best, is_less):
    """Write a row with digits relabelled by first appearance; -1, 0 or 1 as it is to `best`.

    labels: uint8 [10, 10]; row `depth` has the labels so far and at 0 how many there are, row
        depth + 1 is set to those after the row. -1 where is_less.
    """
    labels[depth + 1] = labels[depth]
    verdict = -1 if is_less else 0
    for k in range(9):
        digit = grid[row, order[k]]
        label = 0
        if digit > 0:
            if labels[depth + 1, digit] == 0:
                labels[depth + 1, 0] += 1
                labels[depth + 1, digit] = labels[depth + 1, 0]
            label = labels[depth + 1, digit]
        out[k] = label
        if verdict == 0 and label != best[k]:
            if label > best[k]:
                return 1
            verdict = -1
    return verdict


@njit
def _search(grid, order, empty, labels, rows, out, best):
    """Improve `best`, uint8 [9, 9], by all orders of the rows under one order of the columns."""
    labels[0, :] = 0
    depth, used = 0, 0
    less_from = 9  # The first row that is less than that of `best`.
    rows[0] = -1
    while depth >= 0:
        less_from = 9 if less_from >= depth else less_from
        if rows[depth] >= 0:
            used &= ~(1 << rows[depth])
        row = rows[depth] + 1
        while row < 9 and not _may_follow(row, depth, rows, used, empty):
            row += 1
        rows[depth] = row
        if row == 9:
            depth -= 1
            continue
        used |= 1 << row
        is_less = less_from < depth
        verdict = _relabel(grid, row, order, labels, depth, out[depth], best[depth], is_less)
        if verdict > 0:
            continue
        if verdict < 0:
            less_from = min(less_from, depth)
        if depth < 8:
            depth += 1
            rows[depth] = -1
        elif less_from < 9:
            best[:] = out
            less_from = 9


@kernel(nogil=True)
def _canonical(boards, forms):
    labels, rows = np.zeros((10, 10), np.uint8), np.zeros(9, np.int64)
    out = np.zeros((9, 9), np.uint8)
    empty_rows, empty_columns = np.zeros(9, np.bool_), np.zeros(9, np.bool_)
    for number in range(boards.shape[0]):
        best = np.full((9, 9), 255, np.uint8)
        for turn in range(2):
            grid = boards[number].copy().reshape(9, 9)
            if turn:
                grid = grid.T.copy()
            for k in range(9):
                empty_rows[k] = grid[k].max() == 0
                empty_columns[k] = grid[:, k].max() == 0
            for order in _ORDERS:
                if not _is_repeated(order, empty_columns):
                    _search(grid, order, empty_rows, labels, rows, out, best)
        forms[number] = best.reshape(81)


def canonical_forms(boards: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The least board, cell by cell, that symmetries make of each board; uint8 [rows, 81].

    boards: uint8 [rows, 81], digits, 0 for a blank. A board takes about a millisecond.

    Two boards have the same form if and only if a symmetry takes one into the other.
    """
    out = np.empty((len(boards), 81), np.uint8)
    _canonical(np.ascontiguousarray(boards), out)
    return out
