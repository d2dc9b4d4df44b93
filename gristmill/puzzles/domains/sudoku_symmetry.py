"""Symmetries of Sudoku, and when two boards are the same up to them.

A symmetry relabels digits, moves bands, rows, stacks and columns, and transposes; it leaves the
rules, the clues and the number of solutions as they are. Twins have the same invariant, and boards
with the same invariant nearly always are twins; the canonical form, which is slower, decides.
Source: docs/formats/puzzles.md#sudoku-augmentation, docs/formats/puzzles.md#canonical-form
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains import randomness
from gristmill.puzzles.domains.grid import SUDOKU
from gristmill.puzzles.domains.randomness import mixed, source_key
from gristmill.run.kernels import kernel

_ROUNDS = 3
_BOX, _DIGIT, _BAND, _OWN = (
    np.uint64(word)
    for word in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)
)
_ZERO = np.uint64(0)


@njit
def _refine(board, lines, boxes, digits, sums):
    """Give each line, box and digit a colour by those of its clues; rows are as columns."""
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
    """A number for each board of digits that no symmetry changes, uint64 [rows]."""
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
    """Write a row relabelled by first appearance; -1, 0 or 1 as it is to `best`."""
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
    """The least board that symmetries make of each, uint8 [rows, 81]: equal for twins alone."""
    out = np.empty((len(boards), 81), np.uint8)
    _canonical(np.ascontiguousarray(boards), out)
    return out


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
    """Draw a symmetry: set digits, rows, columns, see `Symmetry`; returns if it transposes."""
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


class Symmetry(NamedTuple):
    """Cell (i, j) is of (rows[i], columns[j]), transposed or not; digit d becomes digits[d]."""

    transposes: bool
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    digits: tuple[int, ...]


def key_of(seed: int, question: str) -> int:
    """The key of a source's draws."""
    return source_key(seed, SUDOKU, question)


def augmentation(seed: int, question: str, number: int) -> Symmetry:
    """The symmetry of a draw of a source, named by its 81 digits; number 0 is the source."""
    if number == 0:
        lines = tuple(range(9))
        return Symmetry(False, lines, lines, tuple(range(10)))
    digits = np.empty(10, np.uint8)
    rows, columns = np.empty(9, np.int64), np.empty(9, np.int64)
    transposes = _drawn(np.uint64(key_of(seed, question)), number, digits, rows, columns)
    moved = (tuple(rows.tolist()), tuple(columns.tolist()))
    return Symmetry(bool(transposes), *moved, tuple(digits.tolist()))


_WEIGHTS = np.array([pow(3, 2 * k + 41, 1 << 64) for k in range(81)], np.uint64)


@njit
def _write(question, answer, places, digits, given, label):
    """Write an example as tokens; returns a hash of it."""
    total = np.uint64(0)
    for cell in range(81):
        place = places[cell]
        token = digits[question[place]] + 1
        given[cell] = token
        label[cell] = digits[answer[place]] + 1
        total += _WEIGHTS[cell] * np.uint64(token)
    return randomness.mixed(total)


@njit
def _is_new(table, inputs, labels, first, row, mark):
    """Whether no earlier row of the group equals `row`, which the table then knows."""
    mask = np.int64(table.shape[0] - 1)
    slot = np.int64(mark & np.uint64(0x7FFFFFFFFFFFFFFF)) & mask
    while table[slot] >= first:
        other = table[slot]
        same = True
        for cell in range(81):
            if inputs[other, cell] != inputs[row, cell] or labels[other, cell] != labels[row, cell]:
                same = False
                break
        if same:
            return False
        slot = (slot + 1) & mask
    table[slot] = row
    return True


@njit
def _set_places(transposes, rows, columns, places):
    for i in range(9):
        for j in range(9):
            place = columns[j] * 9 + rows[i] if transposes else rows[i] * 9 + columns[j]
            places[9 * i + j] = place


@kernel(nogil=True)
def write_groups(questions, answers, keys, num_aug, inputs, labels, draws, sizes, table):
    """Write each source and its augmentations as one group; table is scratch of -1."""
    state = np.zeros(1, np.uint64)
    digits, identity = np.empty(10, np.uint8), np.arange(10).astype(np.uint8)
    rows, columns, places = np.arange(9), np.arange(9), np.arange(81)
    row = 0
    for source in range(questions.shape[0]):
        first = row
        _set_places(False, np.arange(9), np.arange(9), places)
        pair = (questions[source], answers[source])
        mark = _write(pair[0], pair[1], places, identity, inputs[row], labels[row])
        if num_aug > 0:
            _is_new(table, inputs, labels, first, row, mark)
        draws[row] = 0
        row += 1
        number = 0
        while row - first <= num_aug and number < 2 * num_aug + 16:
            number += 1
            transposes = draw(state, keys[source], number, digits, rows, columns)
            _set_places(transposes, rows, columns, places)
            mark = _write(pair[0], pair[1], places, digits, inputs[row], labels[row])
            if _is_new(table, inputs, labels, first, row, mark):
                draws[row] = number
                row += 1
        sizes[source] = row - first
    return row


def groups(
    questions: npt.NDArray[np.uint8],
    answers: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint64],
    num_aug: int,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns inputs, labels, draws and sizes of sources with their augmentations."""
    most = len(questions) * (1 + num_aug)
    inputs, labels = np.empty((most, 81), np.uint8), np.empty((most, 81), np.uint8)
    draws, sizes = np.empty(most, np.int32), np.empty(len(questions), np.int32)
    table = np.full(1 << (2 * (num_aug + 1)).bit_length(), -1, np.int64)
    count = write_groups(questions, answers, keys, num_aug, inputs, labels, draws, sizes, table)
    return inputs[:count], labels[:count], draws[:count], sizes
