"""Sudokus and mazes as rows: the tokens of their characters, and what is wrong with a board."""

from __future__ import annotations

from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.format.batch import Integers
from gristmill.puzzles.format.metadata import Encoding

CELLS: Final = 81
SUDOKU_ENCODING: Final = Encoding(seq_len=CELLS, vocab_size=11)
SUDOKU: Final = "sudoku"

Boards = npt.NDArray[np.uint8]

_NO_DIGIT: Final = 255
_DIGITS: Final = np.full(256, _NO_DIGIT, np.uint8)
_DIGITS[ord("0") : ord("9") + 1] = np.arange(10)
_DIGITS[ord(".")] = 0


def digits(text: Boards, blank: str | None = None) -> Boards:
    """Digits of boards in ASCII, uint8 of the same shape: `.` and `0` are blanks.

    text: uint8. What is no digit becomes 255. blank: another sign of a blank; default: none.
    """
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
