"""The picture of a row, by the kind of its puzzle; a table of tokens for all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Final

import numpy.typing as npt

from gristmill.puzzles.show.arc_picture import SIDE as ARC_SIDE
from gristmill.puzzles.show.arc_picture import arc_svg
from gristmill.puzzles.show.domino_picture import LENGTH, domino_svg
from gristmill.puzzles.show.maze_picture import maze_svg
from gristmill.puzzles.show.sheet import tokens
from gristmill.puzzles.show.sudoku_picture import SIDE as SUDOKU_SIDE
from gristmill.puzzles.show.sudoku_picture import sudoku_svg
from gristmill.puzzles.show.token_table import table_svg

_LARGEST_MAZE: Final = 110


Picture = Callable[..., str]
"""Draws an example as SVG; the arguments are those of `picture` without the kind."""


def picture_of(kind: str, seq_len: int) -> Picture:
    """What draws the rows of a dataset.

    kind: of the puzzles, as in `trace/sources.json`.
    seq_len: tokens of a row.

    Kinds without a picture, and rows of another length than their kind has, get `table_svg`.
    """
    side = isqrt(max(seq_len, 0))
    is_square = 0 < side <= _LARGEST_MAZE and side * side == seq_len
    if kind == "arc" and seq_len == ARC_SIDE * ARC_SIDE:
        return arc_svg
    if kind == "sudoku" and seq_len == SUDOKU_SIDE * SUDOKU_SIDE:
        return sudoku_svg
    if kind == "maze" and is_square:
        return maze_svg
    if kind == "domino" and seq_len == LENGTH:
        return domino_svg
    return table_svg


def picture(
    kind: str,
    inputs: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    title: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Draw an example of a kind as SVG.

    kind: of the puzzle. inputs, labels: integer [seq_len].
    title: line above the drawing. notes: lines below it. Both default to nothing.
    """
    draw = picture_of(kind, len(tokens(inputs)))
    return draw(inputs, labels, title=title, notes=notes)
