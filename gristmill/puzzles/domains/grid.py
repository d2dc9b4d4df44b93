"""Grids and boards: tokens of characters and of any symbols, and the eight symmetries.

Symmetry 0 is the identity; 1, 2, 3 rotate by 90, 180, 270 degrees counter-clockwise; 4 mirrors left
and right, 5 up and down; 6 transposes; 7 along the other diagonal.
Source: docs/formats/puzzles.md#symmetries
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Any, Final, Self, TypeVar

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.format.dataset import Encoding, Integers

CELLS: Final = 81
SUDOKU_ENCODING: Final = Encoding(seq_len=CELLS, vocab_size=11)
SUDOKU: Final = "sudoku"

Boards = npt.NDArray[np.uint8]

_NO_DIGIT: Final = 255
_DIGITS: Final = np.full(256, _NO_DIGIT, np.uint8)
_DIGITS[ord("0") : ord("9") + 1] = np.arange(10)
_DIGITS[ord(".")] = 0


def digits(text: Boards, blank: str | None = None) -> Boards:
    """Digits of boards in ASCII, uint8: `.`, `0` and `blank` are 0, other signs 255."""
    table = _DIGITS
    if blank is not None:
        table = _DIGITS.copy()
        table[ord(blank)] = 0
    return table[text]


def first_without_digit(boards: Boards) -> tuple[int, int] | None:
    """Row and cell of the first value above 9 in boards, uint8 [rows, 81]; None where all fit."""
    if not len(boards) or int(boards.max()) < _NO_DIGIT:
        return None
    row, cell = np.argwhere(boards == _NO_DIGIT)[0]
    return int(row), int(cell)


def text_of(board: npt.ArrayLike) -> str:
    """The 81 digits of a board as text, blanks as 0: the name of a source in draws."""
    return (np.asarray(board, np.uint8) + ord("0")).tobytes().decode()


MAZE: Final = "maze"
CHARSET: Final = "# SGo"
"""The characters of the tokens 1 to 5; 0 is padding, and no cell has it."""
WALL, OPEN, START, GOAL, PATH = range(1, 6)
_PAD_CHARACTER: Final = "?"

_TOKEN_OF: Final = np.zeros(256, np.uint8)
_TOKEN_OF[np.frombuffer(CHARSET.encode(), np.uint8)] = range(1, len(CHARSET) + 1)


def side_of(length: int) -> int | None:
    """The side of a square maze with so many cells; None for a number that is no square."""
    side = isqrt(max(length, 0))
    return side if side and side * side == length else None


def maze_encoding(side: int) -> Encoding:
    """Numbers of a dataset of square mazes; side: cells of one side."""
    return Encoding(seq_len=side * side, vocab_size=len(CHARSET) + 1)


def encoded(characters: Boards) -> Boards:
    """The tokens of characters, uint8 of any shape; 0 for one that no cell may have."""
    return _TOKEN_OF[characters]


def decoded(tokens: Integers) -> list[str]:
    """The lines of a maze; `?` for a token that is not 1 to 5. Raises ValueError for no square."""
    side = side_of(len(tokens))
    if side is None:
        raise ValueError(f"{len(tokens)} tokens are not a square maze")
    text = "".join(
        CHARSET[token - 1] if 0 < token <= len(CHARSET) else _PAD_CHARACTER
        for token in tokens.tolist()
    )
    return [text[begin : begin + side] for begin in range(0, len(text), side)]


Scalar = TypeVar("Scalar", bound=np.generic)

SYMMETRIES: Final = 8
"""How many there are: the ids are 0 to 7."""
INVERSE: Final = (0, 3, 2, 1, 4, 5, 6, 7)
"""The id that undoes each id."""


def affine(symmetry: int, height: int, width: int) -> tuple[int, int, int]:
    """Return (start, down, right): where the cells of a transformed grid come from.

    Cell (r, c) of the transformed grid is cell `start + r * down + c * right` of the grid before,
    row by row. It has no imports, so that a kernel can compile it: `kernel()(affine)`.
    """
    if symmetry == 0:
        return 0, width, 1
    if symmetry == 1:
        return width - 1, -1, width
    if symmetry == 2:
        return height * width - 1, -width, -1
    if symmetry == 3:
        return (height - 1) * width, 1, -width
    if symmetry == 4:
        return width - 1, width, -1
    if symmetry == 5:
        return (height - 1) * width, -width, 1
    if symmetry == 6:
        return 0, 1, width
    return height * width - 1, -1, -width


def turns(symmetry: int) -> bool:
    """Return whether height and width change places. It has no imports, as `affine`."""
    return symmetry == 1 or symmetry == 3 or symmetry >= 6


def transform(grid: npt.NDArray[Scalar], symmetry: int) -> npt.NDArray[Scalar]:
    """Return a grid after a symmetry."""
    height, width = grid.shape
    shape = (width, height) if turns(symmetry) else (height, width)
    return grid.reshape(-1)[index_map(symmetry, height, width)].reshape(shape)


def index_map(symmetry: int, height: int, width: int) -> npt.NDArray[np.int32]:
    """Return where each cell of a transformed grid comes from, row by row."""
    if symmetry not in range(SYMMETRIES):
        raise ValueError(f"{symmetry!r} is not a symmetry: the ids are 0 to {SYMMETRIES - 1}")
    start, down, right = affine(symmetry, height, width)
    rows, columns = (width, height) if turns(symmetry) else (height, width)
    cells = start + np.arange(rows)[:, None] * down + np.arange(columns) * right
    return cells.astype(np.int32).reshape(-1)


@cache
def index_maps(side: int) -> npt.NDArray[np.int32]:
    """The index maps of a square's symmetries, int32 [8, side * side]; shared, never changed."""
    return np.stack([index_map(symmetry, side, side) for symmetry in range(SYMMETRIES)])


KIND: Final = "grid"
PAD: Final = 0

Cells = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class Symbols:
    """What cells are, and their tokens. texts: of each token; empty for padding that no cell is."""

    texts: tuple[str, ...]
    token_of: dict[str | int, int]

    @classmethod
    def of(cls, alphabet: str | None, values: int | None, pad: str | None) -> Self:
        """The symbols of the cells that a config names; see `GridConfig` for its fields."""
        cells: list[str | int] = list(alphabet or range(values or 0))
        pads = [cell for cell in cells if str(cell) == pad]
        ordered = [*pads, *(cell for cell in cells if cell not in pads)]
        first = 0 if pads else 1
        token_of = {cell: token for token, cell in enumerate(ordered, first)}
        return cls(("",) * first + tuple(map(str, ordered)), token_of)

    def encoding(self, height: int, width: int) -> Encoding:
        """The numbers of a dataset whose rows have so many cells."""
        return Encoding(seq_len=height * width, vocab_size=len(self.texts))


def trimmed(tokens: Cells) -> Cells:
    """A grid without the rows below and the columns to its right that are all padding."""
    height, width = extents(tokens[None])[0].tolist()
    return tokens[:height, :width]


def extents(tokens: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Height and width up to the last cell that is no padding, int64 [n, 2]."""
    used = tokens != PAD
    sides = (used.any(axis=2), used.any(axis=1))
    counted = [
        np.where(of, np.arange(1, of.shape[1] + 1), 0).max(axis=1, initial=0) for of in sides
    ]
    return np.stack(counted, axis=1).astype(np.int64)


@cache
def turned_cells(
    symmetry: int, shape: tuple[int, int], sides: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """Where the cells of a turned row come from, -1 for padding: int64, shared, never changed."""
    height, width = shape
    start, down, right = affine(symmetry, height, width)
    rows, columns = (width, height) if turns(symmetry) else (height, width)
    own = start + np.arange(rows)[:, None] * down + np.arange(columns) * right
    cells = np.full(sides, -1, np.int64)
    cells[:rows, :columns] = own // width * sides[1] + own % width
    return cells.reshape(-1)
