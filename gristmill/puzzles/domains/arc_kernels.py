"""Compiled ARC: draws, examples, forms. Source: docs/formats/puzzles.md#arc-augmentation."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gristmill.puzzles.domains.arc_grid import COLOURS, EOS, FIRST_COLOUR, SEQ_LEN, SIDE
from gristmill.puzzles.domains.grid import SYMMETRIES, affine, turns
from gristmill.puzzles.domains.randomness import below, mixed, shuffle, start
from gristmill.run.kernels import kernel

_affine: Any = njit(affine)
_turns: Any = njit(turns)


@njit
def draw(state, key, number, colours):
    """Draw an augmentation: set `colours`, uint8 [10], and return the symmetry."""
    start(state, key, number)
    symmetry = below(state, SYMMETRIES)
    colours[:] = np.arange(COLOURS)
    shuffle(state, colours[1:])
    return symmetry


@njit
def _sums(cells, starts, shapes, values):
    """For each symmetry, pair and colour: the sum of random words of the cells of this colour."""
    pairs = starts.shape[0] // 2
    sums = np.zeros((SYMMETRIES, pairs, COLOURS), np.uint64)
    for symmetry in range(SYMMETRIES):
        for grid in range(2 * pairs):
            height, width = shapes[grid]
            first, down, right = _affine(symmetry, height, width)
            if _turns(symmetry):
                height, width = width, height
            into = sums[symmetry, grid // 2]
            place = np.uint64((grid % 2) * SEQ_LEN)
            into[0] += mixed(np.uint64(4 * SEQ_LEN + (grid % 2) * SEQ_LEN + height * SIDE + width))
            for row in range(height):
                at = starts[grid] + first + row * down
                for column in range(width):
                    into[cells[at + column * right]] += mixed(
                        place + np.uint64(row * SIDE + column)
                    )
    for colour in range(COLOURS):
        values[colour] = mixed(np.uint64(8 * SEQ_LEN + colour))
    return sums


@njit
def _hash(sums, values, colours):
    """The hash of a puzzle from the sums of its symmetry; the order of pairs does not count."""
    total = np.uint64(0)
    for pair in range(sums.shape[0]):
        word = np.uint64(0)
        for colour in range(COLOURS):
            word += sums[pair, colour] * values[colours[colour]]
        total += mixed(word)
    return total


@njit
def _same_grid(cells, starts, shapes, grid, symmetry, colours, other, turned, recoloured):
    """Whether two grids are equal, each after an augmentation of its own."""
    height, width = shapes[grid]
    first, down, right = _affine(symmetry, height, width)
    if _turns(symmetry):
        height, width = width, height
    across, along = shapes[other]
    begin, below_it, beside = _affine(turned, across, along)
    if _turns(turned):
        across, along = along, across
    if height != across or width != along:
        return False
    for row in range(height):
        at = starts[grid] + first + row * down
        there = starts[other] + begin + row * below_it
        for column in range(width):
            one = colours[cells[at + column * right]]
            if one != recoloured[cells[there + column * beside]]:
                return False
    return True


@njit
def _same_puzzle(cells, starts, shapes, symmetry, colours, turned, recoloured, taken):
    """Whether two augmentations make the same pairs of a task, in any order."""
    pairs = starts.shape[0] // 2
    taken[:] = False
    for pair in range(pairs):
        found = False
        for step in range(pairs):
            other = (pair + step) % pairs
            if taken[other]:
                continue
            found = _same_grid(
                cells, starts, shapes, 2 * pair, symmetry, colours, 2 * other, turned, recoloured
            ) and _same_grid(
                *(cells, starts, shapes, 2 * pair + 1, symmetry, colours),
                *(2 * other + 1, turned, recoloured),
            )
            if found:
                taken[other] = True
                break
        if not found:
            return False
    return True


@kernel(nogil=True)
def kept_draws(key, most, tries, cells, starts, shapes):
    """Draw augmentations of a task until enough differ from it and from one another.

    key: of the task, uint64.
    most: augmentations at most. tries: draws at most; they are numbered from 1.

    Returns (numbers int32 [kept + 1], symmetries uint8 [kept + 1], colours uint8 [kept + 1, 10]):
    entry 0 is the task itself, with number 0. A hash says where to look for an equal puzzle;
    whether two are equal, their cells say.
    """
    size = 2
    while size < 2 * (most + 1):
        size *= 2
    slots = np.full(size, -1, np.int64)
    hashes = np.empty(most + 1, np.uint64)
    numbers = np.zeros(most + 1, np.int32)
    symmetries = np.zeros(most + 1, np.uint8)
    colours = np.zeros((most + 1, COLOURS), np.uint8)
    values = np.empty(COLOURS, np.uint64)
    state = np.zeros(1, np.uint64)
    taken = np.zeros(starts.shape[0] // 2, np.bool_)
    sums = _sums(cells, starts, shapes, values)
    count = 0
    for number in range(tries + 1):
        if count > most:
            break
        drawn = colours[count]
        if number == 0:
            symmetry = 0
            drawn[:] = np.arange(COLOURS)
        else:
            symmetry = draw(state, key, number, drawn)
        word = _hash(sums[symmetry], values, drawn)
        slot = np.int64(word & np.uint64(size - 1))
        is_new = True
        while is_new and slots[slot] >= 0:
            known = slots[slot]
            if hashes[known] == word:
                is_new = not _same_puzzle(
                    *(cells, starts, shapes, symmetry, drawn),
                    *(np.int64(symmetries[known]), colours[known], taken),
                )
            slot = (slot + 1) & (size - 1)
        if is_new:
            slots[slot] = count
            hashes[count] = word
            numbers[count], symmetries[count] = number, symmetry
            count += 1
    return numbers[:count], symmetries[:count], colours[:count]


@njit
def _write(cells, first, height, width, symmetry, colours, row, column, tokens):
    """Write the tokens of one grid after an augmentation into zeros."""
    begin, down, right = _affine(symmetry, height, width)
    if _turns(symmetry):
        height, width = width, height
    # Unsigned numbers need no look at indices below 0, and wrap around as they should.
    at, beside = np.uint64(first + begin), np.uint64(right)
    to, across = np.uint64(row * SIDE + column), np.uint64(width)
    renamed = colours + np.uint8(FIRST_COLOUR)
    for _ in range(height):
        for cell in range(across):
            tokens[to + cell] = renamed[cells[at + cell * beside]]
        if column + width < SIDE:
            tokens[to + across] = EOS
        at += np.uint64(down)
        to += np.uint64(SIDE)
    if row + height < SIDE:
        for cell in range(across):
            tokens[to + cell] = EOS


@njit
def room(shapes, pair, symmetry):
    """How many offsets of rows and of columns the grids of a pair have."""
    high = max(shapes[2 * pair, 0], shapes[2 * pair + 1, 0])
    wide = max(shapes[2 * pair, 1], shapes[2 * pair + 1, 1])
    if _turns(symmetry):
        high, wide = wide, high
    return SIDE + 1 - high, SIDE + 1 - wide


@kernel(nogil=True)
def write_examples(
    key, moved, cells, starts, shapes, pairs, numbers, symmetries, colours, inputs, labels
):
    """Write a task's examples, its augmentations' too, into zeros: uint8 [drawn * pairs, 900]."""
    state = np.zeros(1, np.uint64)
    example = 0
    for puzzle in range(numbers.shape[0]):
        symmetry = np.int64(symmetries[puzzle])
        start(state, key, numbers[puzzle])
        fixed = below(state, pairs.shape[0]) if moved else np.int64(0)
        for place in range(pairs.shape[0]):
            pair = pairs[place]
            row, column = 0, 0
            if moved and place != fixed:
                rows, columns = room(shapes, pair, symmetry)
                row, column = below(state, rows), below(state, columns)
            for grid in (2 * pair, 2 * pair + 1):
                height, width = shapes[grid]
                tokens = inputs[example] if grid % 2 == 0 else labels[example]
                _write(
                    *(cells, starts[grid], height, width, symmetry, colours[puzzle]),
                    *(row, column, tokens),
                )
            example += 1


@njit
def _form(cells, starts, shapes, pair, symmetry, form):
    """Write a pair after a symmetry, colours by their first cell; return the length."""
    renamed = np.zeros(COLOURS, np.uint8)
    names, length = 0, 0
    for grid in (2 * pair, 2 * pair + 1):
        height, width = shapes[grid]
        first, down, right = _affine(symmetry, height, width)
        if _turns(symmetry):
            height, width = width, height
        form[length], form[length + 1] = height, width
        length += 2
        for row in range(height):
            at = starts[grid] + first + row * down
            for column in range(width):
                colour = cells[at + column * right]
                if colour and not renamed[colour]:
                    names += 1
                    renamed[colour] = names
                form[length] = renamed[colour]
                length += 1
    return length


@kernel(nogil=True)
def canonical_pair(cells, starts, shapes, pair):
    """The canonical form of a pair, uint8: equal for pairs that an augmentation makes equal."""
    best = np.zeros(4 + 2 * SEQ_LEN, np.uint8)
    form = np.zeros(4 + 2 * SEQ_LEN, np.uint8)
    length = _form(cells, starts, shapes, pair, 0, best)
    for symmetry in range(1, SYMMETRIES):
        _form(cells, starts, shapes, pair, symmetry, form)
        for at in range(length):
            if form[at] != best[at]:
                if form[at] < best[at]:
                    best[:length] = form[:length]
                break
    return best[:length].copy()
