"""One example of a dataset for the overview of its asset, in few characters.

See also `picture.py`: pictures with all that an example holds; `gristmill.markdown.inline_image`:
how many characters the UI shows where they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.show import arc_picture as arc
from gristmill.puzzles.show import domino_picture as domino
from gristmill.puzzles.show import maze_picture as maze
from gristmill.puzzles.show import sudoku_picture as sudoku
from gristmill.puzzles.show.picture import picture_of
from gristmill.puzzles.show.sheet import PAPER, Grid, tokens
from gristmill.svg import OVERVIEW, SOFT, bitmap, small_card, small_text

_ROOM: Final = OVERVIEW - 20
_TALLEST: Final = 168
_TOP: Final = 46


def small_picture(
    kind: str, inputs: npt.ArrayLike, labels: npt.ArrayLike, title: str
) -> str | None:
    """An example as a small SVG; None for kinds that have no picture.

    kind: of the puzzle. inputs, labels: integer [seq_len]. title: line above the drawing.
    """
    given, wanted = tokens(inputs), tokens(labels)
    drawn = picture_of(kind, len(given))
    for picture, draw in (
        (arc.arc_svg, _arc),
        (sudoku.sudoku_svg, _sudoku),
        (maze.maze_svg, _maze),
        (domino.domino_svg, _domino),
    ):
        if drawn is picture:
            note, height, body = draw(given, wanted)
            heading = small_text(10, 20, title, " font-weight='700'")
            below = small_text(10, 38, note, f" fill='{SOFT}'")
            return small_card(_TOP + height + 10, [heading, below, *body])
    return None


def _arc(given: Grid, wanted: Grid) -> tuple[str, int, list[str]]:
    pair = [row.reshape(arc.SIDE, arc.SIDE) for row in (given, wanted)]
    sizes = [arc.caption("", grid).strip().partition(" at")[0] for grid in pair]
    window = arc.extent(pair)
    left, right = (_known(grid[window], len(arc.PALETTE) + arc.FIRST_COLOUR) for grid in pair)
    rows, columns = left.shape
    gap = np.full((rows, max(1, columns // 6)), -1)
    cells = np.hstack([left, gap, right]).tolist()
    cell = min(16, _ROOM // len(cells[0]), _TALLEST // rows)
    palette = ["#334455", PAPER, arc.BORDER, *arc.PALETTE, "#ffffff"]
    numbers = [[value + 1 for value in line] for line in cells]
    return f"{sizes[0]} → {sizes[1]}", cell * rows, [_cells(numbers, palette, cell)]


def _maze(given: Grid, wanted: Grid) -> tuple[str, int, list[str]]:
    grid, solved = maze.square(given), maze.square(wanted)
    shown = _known(np.where(solved == maze.PATH, maze.PATH, grid), maze.PATH + 1)
    cell = min(16, _TALLEST // len(grid))
    palette = [PAPER, maze.WALLS, PAPER, maze.FROM, maze.TO, maze.ROUTE, "#ffffff"]
    note = f"{len(grid)} × {len(grid)}, path of {int((solved == maze.PATH).sum())}"
    return note, cell * len(grid), [_cells(shown.tolist(), palette, cell)]


def _known(grid: Grid, most: int) -> Grid:
    """Tokens outside of 0 to most - 1 as `most`."""
    return np.where((grid < 0) | (grid >= most), most, grid)


def _cells(numbers: Sequence[Sequence[int]], palette: Sequence[str], cell: int) -> str:
    """A bitmap with the colours that occur in it."""
    used = sorted({number for line in numbers for number in line})
    lines = [[used.index(number) for number in line] for line in numbers]
    return bitmap(lines, [palette[number] for number in used], 10, _TOP, cell)


def _sudoku(given: Grid, _: Grid) -> tuple[str, int, list[str]]:
    board, cell = given.reshape(sudoku.SIDE, sudoku.SIDE), 18
    is_given = board > sudoku.BLANK
    rows = []
    for row, line in enumerate(board.tolist()):
        held = np.flatnonzero(is_given[row]).tolist()
        if held:
            digits = "".join(sudoku.digit(line[column]) for column in held)
            places = " ".join(map(str, held))
            rows.append(f"<text x='{places}' y='{row}'>{digits}</text>")
    walls = "".join(f"M{k} 0v9M0 {k}h9" for k in range(0, 10, 3))
    body = [
        f"<g transform='translate(10 {_TOP}) scale({cell})'>",
        f"<path d='M0 4.5h9' stroke='{PAPER}' stroke-width='9'/>",
        f"<path d='{walls}' stroke='#222' stroke-width='.08'/>",
        "<g transform='translate(.5 .75)' font-size='.75' text-anchor='middle' fill='#222'>",
        *rows,
        "</g></g>",
    ]
    return f"{int(is_given.sum())} givens", 9 * cell, body


def _domino(given: Grid, wanted: Grid) -> tuple[str, int, list[str]]:
    scene = domino.decoded(given, wanted)
    tiles, chosen = "", ""
    numbers = []
    for place, tile in enumerate(scene.hand):
        x, y = 10 + place % 4 * 52, 2 + place // 4 * 32
        outline = f"M{x} {y}h48v24h-48z"
        tiles += outline
        chosen = outline if tile == scene.chosen else chosen
        low, high = (str(half) if half >= 0 else "?" for half in tile)
        numbers.append(f"<text x='{x + 12} {x + 36}' y='{y + 17}'>{low}{high}</text>")
    ends = " and ".join(str(end) if end >= 0 else "–" for end in scene.ends)
    body = [
        f"<g transform='translate(0 {_TOP})'><path d='{tiles}' fill='{PAPER}'/>",
        f"<path d='{chosen}' fill='{domino.CHOSEN}'/>",
        f"<g font-size='14' fill='#222' text-anchor='middle'>{''.join(numbers)}</g></g>",
    ]
    note = f"ends {ends} · {domino.move(scene)}"
    return note, 32 * max(1, -(-len(scene.hand) // 4)), body
