"""A maze as SVG: walls, start, goal and path.

Source: `docs/formats/puzzles.md#maze`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.show.sheet import LEFT, PAPER, TOP, WRONG, Grid, filled, sheet, tokens
from gristmill.svg import BOLD, MIDDLE, MIN_TEXT, SOFT, text_at

WALL, SPACE, START, GOAL, PATH = 1, 2, 3, 4, 5
WALLS, ROUTE, FROM, TO = "#4a4038", "#f2a65a", "#2e8b57", "#c0392b"
_WIDEST: Final = 330
_LARGEST_CELL: Final = 24


def maze_svg(
    inputs: npt.ArrayLike, labels: npt.ArrayLike, *, title: str = "", notes: Sequence[str] = ()
) -> str:
    """Draw the maze with the path of the label in it.

    inputs, labels: integer [n * n], tokens row by row: 1 wall, 2 space, 3 start, 4 goal, 5 path.
    title: line above the maze. notes: lines below it. Both default to nothing.

    Cells in which the label contradicts the input are red: the label may only make path of space.
    The SVG takes 2 to 12 kB. Raises ValueError where the number of tokens is no square.
    """
    maze, solved = (square(tokens(row)) for row in (inputs, labels))
    side = len(maze)
    size = max(3, min(_LARGEST_CELL, _WIDEST // side))
    route = solved == PATH
    body = [
        f'<rect x="{LEFT}" y="{TOP}" width="{size * side}" height="{size * side}" fill="{PAPER}"'
        f' stroke="{SOFT}" stroke-width="1"/>',
        filled(maze == WALL, LEFT, TOP, size, WALLS),
        filled(route, LEFT, TOP, size, ROUTE),
        filled(contradicted(maze, solved), LEFT, TOP, size, WRONG),
    ]
    has_letters = size * 0.9 >= MIN_TEXT
    for token, fill, letter in ((START, FROM, "S"), (GOAL, TO, "G")):
        body.append(filled(maze == token, LEFT, TOP, size, fill))
        for row, column in np.argwhere(maze == token).tolist()[: 4 * has_letters]:
            x, y = LEFT + size * (column + 0.5), TOP + size * (row + 0.82)
            body.append(text_at(x, y, letter, size * 0.9, "#fff", MIDDLE + BOLD))
    caption = f"{side} × {side}, path of {int(route.sum())} cells"
    if not has_letters:
        caption += " from green to red"
    return sheet(
        size * side,
        size * side,
        body,
        title=title,
        captions=[(float(LEFT), caption)],
        notes=notes,
        label=f"Maze {title}".strip(),
    )


def square(row: Grid) -> Grid:
    """Tokens as a square grid. Raises ValueError where their number is no square."""
    side = isqrt(len(row))
    if side * side != len(row):
        raise ValueError(f"{len(row)} tokens are no square")
    return row.reshape(side, side)


def contradicted(maze: Grid, solved: Grid) -> npt.NDArray[np.bool_]:
    """The cells, bool [n, n], in which a label differs otherwise than by path for space.

    maze, solved: tokens [n, n] of an input and its label. Unknown tokens are among them.
    """
    unknown = (maze < WALL) | (maze > GOAL)
    found: npt.NDArray[np.bool_] = unknown | (
        (maze != solved) & ~((maze == SPACE) & (solved == PATH))
    )
    return found
