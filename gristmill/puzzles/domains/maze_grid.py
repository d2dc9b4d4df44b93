"""A maze as a row: which token a character has, and its cells row by row."""

from __future__ import annotations

from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.format.batch import Integers
from gristmill.puzzles.format.metadata import Encoding

KIND: Final = "maze"
CHARSET: Final = "# SGo"
"""The characters of the tokens 1 to 5; 0 is padding, and no cell has it."""
WALL, OPEN, START, GOAL, PATH = range(1, 6)
_PAD_CHARACTER: Final = "?"

Tokens = npt.NDArray[np.uint8]

_TOKEN_OF: Final = np.zeros(256, np.uint8)
_TOKEN_OF[np.frombuffer(CHARSET.encode(), np.uint8)] = range(1, len(CHARSET) + 1)


def side_of(length: int) -> int | None:
    """The side of a square maze with so many cells; None for a number that is no square."""
    side = isqrt(max(length, 0))
    return side if side and side * side == length else None


def encoding(side: int) -> Encoding:
    """Numbers of a dataset of square mazes; side: cells of one side."""
    return Encoding(seq_len=side * side, vocab_size=len(CHARSET) + 1)


def encoded(characters: Tokens) -> Tokens:
    """The tokens of characters, same shape; 0 for a character that no cell may have.

    characters: bytes, uint8 of any shape.
    """
    return _TOKEN_OF[characters]


def decoded(tokens: Integers) -> list[str]:
    """The lines of a maze; `?` for a token that is not 1 to 5.

    Raises ValueError for another number of tokens.
    """
    side = side_of(len(tokens))
    if side is None:
        raise ValueError(f"{len(tokens)} tokens are not a square maze")
    text = "".join(
        CHARSET[token - 1] if 0 < token <= len(CHARSET) else _PAD_CHARACTER
        for token in tokens.tolist()
    )
    return [text[begin : begin + side] for begin in range(0, len(text), side)]
