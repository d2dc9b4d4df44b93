"""A Sudoku as SVG: its givens, and its solution, where givens and filled digits differ.

Source: `docs/formats/puzzles.md#sudoku`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.show.sheet import (
    LEFT,
    PAPER,
    TOP,
    WRONG,
    Grid,
    filled,
    lattice,
    sheet,
    tokens,
)

SIDE: Final = 9
BLANK: Final = 1
"""The token of a blank cell; the token of a digit is the digit and 1."""
GIVEN, ADDED = "#1f2328", "#1668b8"
_GROUND: Final = "#dccfae"
_SIZE: Final = 23
_GAP: Final = 24
_BOARD: Final = SIDE * _SIZE


def sudoku_svg(
    inputs: npt.ArrayLike, labels: npt.ArrayLike, *, title: str = "", notes: Sequence[str] = ()
) -> str:
    """Draw the givens and the solution next to each other.

    inputs, labels: integer [81], tokens row by row: 1 blank, 2 to 10 the digits 1 to 9.
    title: line above the boards. notes: lines below them. Both default to nothing.

    Givens are bold on a ground of their own. A cell of the solution is red that its given
    contradicts, whose digit is twice in its row, column or box, or that has no digit; tokens
    outside the vocabulary are `?`. The SVG takes 6 kB.
    """
    given = tokens(inputs).reshape(SIDE, SIDE)
    solution = tokens(labels).reshape(SIDE, SIDE)
    second = LEFT + _BOARD + _GAP
    is_given = given > BLANK
    wrong = twice(solution) | (is_given & (given != solution)) | ~is_digit(solution)
    body = _board(given, is_given, twice(given), LEFT)
    body += _board(solution, is_given, wrong, second)
    captions = [
        (float(LEFT), f"{int(is_given.sum())} givens"),
        (float(second), f"solution, {int((~is_given).sum())} digits filled in"),
    ]
    return sheet(
        2 * _BOARD + _GAP,
        _BOARD,
        body,
        title=title,
        captions=captions,
        notes=notes,
        label=f"Sudoku {title}".strip(),
    )


def digit(token: int) -> str:
    """A token as people read it: a digit, nothing for a blank or PAD, `?` for all others."""
    if token in (0, BLANK):
        return ""
    return str(token - 1) if BLANK < token <= SIDE + 1 else "?"


def is_digit(board: Grid) -> npt.NDArray[np.bool_]:
    """The cells that hold a digit, bool [9, 9]."""
    found: npt.NDArray[np.bool_] = (board > BLANK) & (board <= SIDE + 1)
    return found


def twice(board: Grid) -> npt.NDArray[np.bool_]:
    """The cells whose digit is twice in their row, column or box, bool [9, 9].

    board: tokens [9, 9]; blanks and PAD are never twice.
    """
    same = board[:, :, None, None] == board[None, None, :, :]
    row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
    box = row // 3 * 3 + column // 3
    peers = ((row[:, None] == row) | (column[:, None] == column) | (box[:, None] == box)) & ~np.eye(
        SIDE * SIDE, dtype=bool
    )
    clash = (same.reshape(SIDE * SIDE, SIDE * SIDE) & peers).any(axis=1)
    found: npt.NDArray[np.bool_] = clash.reshape(SIDE, SIDE) & (board > BLANK)
    return found


def _board(
    board: Grid, is_given: npt.NDArray[np.bool_], wrong: npt.NDArray[np.bool_], left: float
) -> list[str]:
    body = [
        f'<rect x="{left:g}" y="{TOP}" width="{_BOARD}" height="{_BOARD}" fill="{PAPER}"/>',
        filled(is_given, left, TOP, _SIZE, _GROUND),
        filled(wrong, left, TOP, _SIZE, "#fbd9d7"),
        lattice(SIDE, SIDE, left, TOP, _SIZE, "#b9ad9b"),
        lattice(3, 3, left, TOP, 3 * _SIZE, "#4a4038", 1.6),
    ]
    for mask, style in (
        (is_given & ~wrong, f'fill="{GIVEN}" font-weight="700"'),
        (~is_given & ~wrong, f'fill="{ADDED}"'),
        (wrong, f'fill="{WRONG}" font-weight="700"'),
    ):
        digits = "".join(
            _digit(row, column, digit(int(board[row, column])), left)
            for row, column in np.argwhere(mask).tolist()
        )
        if digits:
            body.append(f'<g font-size="15" text-anchor="middle" {style}>{digits}</g>')
    return body


def _digit(row: int, column: int, text: str, left: float) -> str:
    if not text:
        return ""
    x, y = left + _SIZE * column + _SIZE / 2, TOP + _SIZE * row + 17
    return f'<text x="{x:g}" y="{y:g}">{text}</text>'
