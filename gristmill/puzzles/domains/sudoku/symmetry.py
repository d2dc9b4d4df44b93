"""Symmetries of Sudoku: relabelled digits, moved bands, rows, stacks and columns, transposition.

Each leaves the rules, the clues and the number of solutions as they are.
Source: docs/formats/puzzles.md#sudoku-augmentation
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any, NamedTuple

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


class Symmetry(NamedTuple):
    """One symmetry.

    rows, columns: nine numbers: cell (i, j) comes from cell (rows[i], columns[j]), of the
        transposed board where it transposes. digits: ten numbers: digit d becomes digits[d].
    """

    transposes: bool
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    digits: tuple[int, ...]


def key_of(seed: int, question: str) -> int:
    """The key of a source's draws."""
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
    """Write each source and its augmentations as one group.

    questions, answers: uint8 [sources, 81], digits. keys: uint64 [sources].
    num_aug: augmentations of a source at most; fewer where draws repeat an example.
    inputs, labels: uint8 [sources * (1 + num_aug), 81], filled from the beginning.
    sizes: int32 [sources], examples of each group.
    table: int64 [a power of 2 above twice the size of a group], -1 everywhere.
    """
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
    """Returns (inputs, labels, draws, sizes) of sources with their augmentations.

    questions, answers: uint8 [sources, 81], digits. keys: uint64 [sources], see
        `symmetry.key_of`. num_aug: augmentations of a source at most.

    uint8 [examples, 81] twice, tokens; int32 [examples], the number of each draw; int32 [sources].
    """
    most = len(questions) * (1 + num_aug)
    inputs, labels = np.empty((most, 81), np.uint8), np.empty((most, 81), np.uint8)
    draws, sizes = np.empty(most, np.int32), np.empty(len(questions), np.int32)
    table = np.full(1 << (2 * (num_aug + 1)).bit_length(), -1, np.int64)
    count = write_groups(questions, answers, keys, num_aug, inputs, labels, draws, sizes, table)
    return inputs[:count], labels[:count], draws[:count], sizes
