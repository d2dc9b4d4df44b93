"""ARC grids as 900 tokens, with EOS on the border alone. Source: docs/formats/puzzles.md#arc."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.format.metadata import Encoding

Grid = npt.NDArray[np.uint8]

SIDE: Final = 30
SEQ_LEN: Final = SIDE * SIDE
PAD: Final = 0
EOS: Final = 1
FIRST_COLOUR: Final = 2
"""The token of colour 0; colour c is c + 2."""
COLOURS: Final = 10
VOCAB_SIZE: Final = FIRST_COLOUR + COLOURS
ENCODING: Final = Encoding(seq_len=SEQ_LEN, vocab_size=VOCAB_SIZE, pad_id=PAD)


class Placed(NamedTuple):
    """A grid and where it is in its sequence.

    grid: uint8 [height, width], colours 0 to 9.
    """

    grid: Grid
    row: int
    column: int


def checked_grid(grid: npt.ArrayLike) -> Grid:
    """Return a grid as uint8 [height, width].

    grid: integers 0 to 9 of any type, in two dimensions of 1 to 30; lists and tensors count, too.
    """
    try:
        cells = np.asarray(grid)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"is not a grid: {error}") from error
    if cells.dtype.kind not in "iu" or cells.ndim != 2 or min(cells.shape) == 0:
        raise ValueError(
            f"is not a grid: {cells.dtype} {cells.shape}: it needs two dimensions and integers"
        )
    if max(cells.shape) > SIDE:
        raise ValueError(f"is not a grid: {cells.shape}: it has at most {SIDE} x {SIDE} cells")
    if cells.min() < 0 or cells.max() >= COLOURS:
        raise ValueError(
            f"is not a grid: has {cells.min()} to {cells.max()}: colours are 0 to {COLOURS - 1}"
        )
    return cells.astype(np.uint8)


def encode(grid: Grid, row: int = 0, column: int = 0) -> Grid:
    """Return the tokens of a grid, uint8 [900], row by row.

    grid: uint8 [height, width], colours 0 to 9.
    row, column: of its first cell, default (0, 0).

    EOS is in the row below the grid, over its width, and in the column to its right, over its
    height, where the 30 x 30 cells have them; the corner between them stays PAD.
    Raises ValueError for what `checked_grid` refuses, and for a grid that does not fit.
    """
    grid = checked_grid(grid)
    bottom, right = row + grid.shape[0], column + grid.shape[1]
    if row < 0 or column < 0 or bottom > SIDE or right > SIDE:
        raise ValueError(f"a grid of {grid.shape} at {(row, column)} is not within 30 x 30 cells")
    tokens = np.full((SIDE, SIDE), PAD, np.uint8)
    tokens[row:bottom, column:right] = grid + FIRST_COLOUR
    if bottom < SIDE:
        tokens[bottom, column:right] = EOS
    if right < SIDE:
        tokens[row:bottom, right] = EOS
    return tokens.reshape(-1)


def decode(tokens: npt.NDArray[np.integer]) -> Placed:
    """Return the grid of a sequence and its place, wherever it is.

    tokens: integers [900], as `encode` makes them.

    Raises ValueError where they are not the tokens of one grid with its border, and says why.
    """
    cells = _cells(tokens)
    if cells.min() < PAD or cells.max() >= VOCAB_SIZE:
        raise ValueError(f"a token is not one of 0 to {VOCAB_SIZE - 1}")
    rows = np.flatnonzero((cells >= FIRST_COLOUR).any(axis=1))
    columns = np.flatnonzero((cells >= FIRST_COLOUR).any(axis=0))
    if not len(rows):
        raise ValueError("no cell has a colour")
    row, column = int(rows[0]), int(columns[0])
    found = cells[row : rows[-1] + 1, column : columns[-1] + 1]
    if found.min() < FIRST_COLOUR:
        raise ValueError("the cells with a colour are not a rectangle")
    grid = (found - FIRST_COLOUR).astype(np.uint8)
    if not np.array_equal(encode(grid, row, column), cells.reshape(-1)):
        raise ValueError("EOS is not on the border of the grid alone")
    return Placed(grid, row, column)


def read_answer(tokens: npt.NDArray[np.integer], row: int = 0, column: int = 0) -> Grid | None:
    """Return the grid that a model predicts, None where it predicts none.

    tokens: integers [900]; what is predicted where the label is PAD does not count.
    row, column: where the grid begins: the place of the input, from `decode`. Default (0, 0).

    It is the largest rectangle of colours that begins there; of several that are equally large the
    one with the fewest rows, as in the original.
    Raises ValueError for other tokens than 900 integers, and a place outside of 30 x 30 cells.
    """
    if not (0 <= row < SIDE and 0 <= column < SIDE):
        raise ValueError(f"{(row, column)} is not within 30 x 30 cells")
    cells = _cells(tokens)[row:, column:]
    coloured = (cells >= FIRST_COLOUR) & (cells < VOCAB_SIZE)
    width, best = coloured.shape[1], (0, 0, 0)
    for height, line in enumerate(coloured, 1):
        width = min(width, len(line) if line.all() else int(line.argmin()))
        if height * width > best[0]:
            best = height * width, height, width
    area, height, width = best
    return (cells[:height, :width] - FIRST_COLOUR).astype(np.uint8) if area else None


def _cells(tokens: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    found = np.asarray(tokens)
    if found.shape != (SEQ_LEN,) or found.dtype.kind not in "iu":
        raise ValueError(f"tokens {found.dtype} {found.shape}, expected integers ({SEQ_LEN},)")
    return found.reshape(SIDE, SIDE)
