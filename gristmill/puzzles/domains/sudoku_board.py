"""Sudoku boards: text, digits and tokens, and what is wrong with a board."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.format.metadata import Encoding

CELLS: Final = 81
ENCODING: Final = Encoding(seq_len=CELLS, vocab_size=11)
KIND: Final = "sudoku"

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
