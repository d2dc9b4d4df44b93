"""Compiled checks of ARC examples: where a grid is in its tokens, and whether it is right.

They share no code with the kernels that write examples.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.puzzles.domains.arc_grid import COLOURS, EOS, FIRST_COLOUR, SEQ_LEN, SIDE
from gristmill.run.kernels import kernel


@kernel(nogil=True)
def places(tokens):
    """Where the grid of each row is: int32 [n, 4], row, column, height, width.

    All four are 0 for a row that is not one grid of colours with its border of EOS, and else PAD.
    """
    found = np.zeros((tokens.shape[0], 4), np.int32)
    for number in range(tokens.shape[0]):
        cells = tokens[number]
        filled = 0
        for cell in range(SEQ_LEN):
            filled += cells[cell] != 0
        corner = 0
        while corner < SEQ_LEN and cells[corner] == 0:
            corner += 1
        if corner == SEQ_LEN:
            continue
        height, width = _extent(cells, corner)
        # Nothing else is filled, where all that belongs to the grid is in its place.
        if height > 0 and filled == _whole(cells, corner, height, width):
            found[number] = corner // SIDE, corner % SIDE, height, width
    return found


@njit
def _extent(cells, corner):
    """Height and width of the cells with a colour from a corner on."""
    row, column = corner // SIDE, corner % SIDE
    width = 0
    while column + width < SIDE and cells[corner + width] >= FIRST_COLOUR:
        width += 1
    height = 0
    while row + height < SIDE and cells[corner + height * SIDE] >= FIRST_COLOUR:
        height += 1
    return height, width


@njit
def _whole(cells, corner, height, width):
    """How many cells a grid and its border have; -1 where one of them is wrong."""
    row, column = corner // SIDE, corner % SIDE
    count = height * width
    is_whole = True
    for line in range(height):
        at = corner + line * SIDE
        for cell in range(width):
            token = cells[at + cell]
            is_whole &= token >= FIRST_COLOUR and token < FIRST_COLOUR + COLOURS
        if column + width < SIDE:
            is_whole &= cells[at + width] == EOS
            count += 1
    if row + height < SIDE:
        at = corner + height * SIDE
        for cell in range(width):
            is_whole &= cells[at + cell] == EOS
        count += width
    return count if is_whole else -1


@kernel(nogil=True)
def unequal(tokens, placed, cells, starts, shapes, original_of, steps, symmetries, colours):
    """Which rows are not their original after the augmentation: bool [n].

    cells, starts, shapes: the grids of the originals: uint8, one after another, int64 [originals],
        where each begins, int32 [originals, 2].
    original_of: int64 [n], the original of each row.
    steps: int64 [originals, 8, 3], the affine map of each symmetry of each original.
    symmetries: uint8 [n]. colours: uint8 [n, 10]. Both are the augmentation of each row.
    """
    wrong = np.zeros(tokens.shape[0], np.bool_)
    for number in range(tokens.shape[0]):
        row, column, height, width = placed[number]
        other = original_of[number]
        high, wide = shapes[other]
        symmetry = symmetries[number]
        if symmetry == 1 or symmetry == 3 or symmetry >= 6:
            high, wide = wide, high
        if height != high or width != wide:
            wrong[number] = True
            continue
        # Unsigned numbers need no look at indices below 0, and wrap around as they should.
        start = np.uint64(starts[other] + steps[other, symmetry, 0])
        down, right = np.uint64(steps[other, symmetry, 1]), np.uint64(steps[other, symmetry, 2])
        renamed = colours[number] + FIRST_COLOUR
        line = tokens[number]
        to = np.uint64(row * SIDE + column)
        across = np.uint64(width)
        differs = False
        for _ in range(height):
            for cell in range(across):
                differs |= line[to + cell] != renamed[cells[start + cell * right]]
            start += down
            to += np.uint64(SIDE)
        wrong[number] = differs
    return wrong
