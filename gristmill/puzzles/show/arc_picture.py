"""A pair of ARC grids as SVG, in the usual ten colours, each with its EOS border.

Source: `docs/formats/puzzles.md#arc`.
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

SIDE: Final = 30
PAD: Final = 0
EOS: Final = 1
FIRST_COLOUR: Final = 2
PALETTE: Final = (
    "#111111",
    "#1e78d6",
    "#f04438",
    "#33b74a",
    "#f7d417",
    "#a6a6a6",
    "#e321b2",
    "#f88a2a",
    "#83d3f2",
    "#86172b",
)
"""Colours 0 to 9 of ARC."""
BORDER: Final = "#d9cdb4"
"""Of EOS tokens."""
_LINES: Final = "#6d6d6d"
_WIDEST: Final = 210
_LARGEST_CELL: Final = 20
_GAP: Final = 26


def arc_svg(
    inputs: npt.ArrayLike, labels: npt.ArrayLike, *, title: str = "", notes: Sequence[str] = ()
) -> str:
    """Draw the input and the output of an example next to each other.

    inputs, labels: integer [900], tokens row by row: 0 PAD, 1 EOS, 2 to 11 the colours 0 to 9.
    title: line above the grids. notes: lines below them. Both default to nothing.

    Rows and columns around the grids that have only PAD in both are left out; the captions say
    where a grid begins that is not at the first cell. Other tokens have a red border. The SVG
    takes 2 to 25 kB.
    """
    pair = [tokens(row).reshape(SIDE, SIDE) for row in (inputs, labels)]
    captions_of = [caption(*named) for named in zip(("input", "output"), pair, strict=True)]
    window = extent(pair)
    pair = [grid[window] for grid in pair]
    rows, columns = pair[0].shape
    size = max(5, min(_LARGEST_CELL, _WIDEST // max(rows, columns)))
    body: list[str] = []
    second = LEFT + size * columns + _GAP
    for grid, left in zip(pair, (LEFT, second), strict=True):
        body += _grid(grid, left, size)
    middle = TOP + size * rows / 2
    x = second - _GAP / 2
    body.append(
        f'<path d="M{x - 7:g} {middle:g}h12m-5 -5l5 5l-5 5" fill="none" stroke="#bcc"'
        ' stroke-width="2"/>'
    )
    wide = 2 * size * columns + _GAP
    captions = [(float(x), text) for x, text in zip((LEFT, second), captions_of, strict=True)]
    return sheet(
        wide,
        size * rows,
        body,
        title=title,
        captions=captions,
        notes=notes,
        label=f"ARC pair {title}".strip(),
    )


def extent(grids: Sequence[Grid]) -> tuple[slice, slice]:
    """The rows and columns around all tokens that are not PAD, one cell at least.

    grids: tokens [30, 30].
    """
    used = np.any([grid != PAD for grid in grids], axis=0)
    rows, columns = np.nonzero(used.any(axis=1))[0], np.nonzero(used.any(axis=0))[0]
    if not len(rows):
        return slice(0, 1), slice(0, 1)
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def caption(name: str, grid: Grid) -> str:
    """The name of a grid, the size of the rectangle that holds its colours, and where it begins.

    name: `input` or `output`. grid: tokens [30, 30].
    """
    rows, columns = np.nonzero(grid > EOS)
    if not len(rows):
        return f"{name} without colours"
    row, column = int(rows.min()), int(columns.min())
    place = f" at ({row}, {column})" if row or column else ""
    return f"{name} {np.ptp(rows) + 1} × {np.ptp(columns) + 1}{place}"


def _grid(grid: Grid, left: float, size: float) -> list[str]:
    rows, columns = grid.shape
    body = [
        f'<rect x="{left:g}" y="{TOP}" width="{size * columns:g}" height="{size * rows:g}"'
        f' fill="{PAPER}" stroke="#d8cfbd" stroke-width="1"/>'
    ]
    body.append(filled(grid == EOS, left, TOP, size, BORDER))
    for colour in range(len(PALETTE)):
        body.append(filled(grid == colour + FIRST_COLOUR, left, TOP, size, PALETTE[colour]))
    body.append(_between(grid, left, size))
    unknown = (grid < PAD) | (grid >= FIRST_COLOUR + len(PALETTE))
    body.append(filled(unknown, left, TOP, size, "#fff", f' stroke="{WRONG}" stroke-width="2"'))
    return body


def _between(grid: Grid, left: float, size: float) -> str:
    """Lines between the cells of the rectangle that holds the colours."""
    rows, columns = np.nonzero(grid > EOS)
    if not len(rows):
        return ""
    x, y = left + size * int(columns.min()), TOP + size * int(rows.min())
    tall, wide = int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1
    return lattice(tall, wide, x, y, size, _LINES)
