"""Rows of puzzles as text for a terminal, with colours where it has them.

What colours say is also said by characters: a terminal without colours shows as much.
See also `picture.py`: pictures for a browser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.show import arc_picture as arc
from gristmill.puzzles.show import domino_picture as domino
from gristmill.puzzles.show import maze_picture as maze
from gristmill.puzzles.show import sudoku_picture as sudoku
from gristmill.puzzles.show.picture import picture_of
from gristmill.puzzles.show.sheet import WRONG, Grid, tokens
from gristmill.puzzles.show.token_table import MOST, columns_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_DARK_COLOURS: Final = (0, 1, 2, 6, 9)
"""Colours of ARC on which a digit must be white."""
_Draw = Callable[[Grid, Grid], "RenderableType"]


def board(kind: str, inputs: npt.ArrayLike, labels: npt.ArrayLike) -> RenderableType:
    """An example as text: grids, boards, or a hand; a table of tokens for all other kinds.

    kind: of the puzzle. inputs, labels: integer [seq_len].
    """
    given, wanted = tokens(inputs), tokens(labels)
    drawn = picture_of(kind, len(given))
    by_picture: dict[object, _Draw] = {
        arc.arc_svg: _arc,
        sudoku.sudoku_svg: _sudoku,
        maze.maze_svg: _maze,
        domino.domino_svg: _domino,
    }
    return by_picture.get(drawn, _tokens)(given, wanted)


def _beside(*columns: RenderableType) -> RenderableType:
    from rich.columns import Columns

    return Columns(columns, padding=(0, 4))


def _text(caption: str) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True)
    return text.append(f"{caption}\n", "dim")


def _arc(given: Grid, wanted: Grid) -> RenderableType:
    pair = [row.reshape(arc.SIDE, arc.SIDE) for row in (given, wanted)]
    window = arc.extent(pair)
    texts = []
    for name, grid in zip(("input", "output"), pair, strict=True):
        text = _text(arc.caption(name, grid))
        for line in grid[window].tolist():
            for token in line:
                text.append(*_arc_cell(token))
            text.append("\n")
        texts.append(text)
    return _beside(*texts)


def _arc_cell(token: int) -> tuple[str, str]:
    if token == arc.PAD:
        return "  ", ""
    if token == arc.EOS:
        return "· ", "dim"
    colour = token - arc.FIRST_COLOUR
    if not 0 <= colour < len(arc.PALETTE):
        return "? ", f"bold {WRONG}"
    ink = "white" if colour in _DARK_COLOURS else "black"
    return f"{colour} ", f"{ink} on {arc.PALETTE[colour]}"


def _sudoku(given: Grid, wanted: Grid) -> RenderableType:
    side = sudoku.SIDE
    start, solution = given.reshape(side, side), wanted.reshape(side, side)
    is_given = start > sudoku.BLANK
    wrong = sudoku.twice(solution) | (is_given & (start != solution)) | ~sudoku.is_digit(solution)
    left = _text(f"{int(is_given.sum())} givens")
    right = _text("solution, givens bold, ! against the rules")
    for row in range(side):
        if row in (3, 6):
            for text in (left, right):
                text.append("──────┼───────┼──────\n", "dim")
        for text, grid, marked in ((left, start, sudoku.twice(start)), (right, solution, wrong)):
            for column in range(side):
                if column in (3, 6):
                    text.append("│ ", "dim")
                style = "bold" if is_given[row, column] else "bright_blue"
                shown = sudoku.digit(int(grid[row, column])) or "."
                if marked[row, column]:
                    text.append(f"{shown}!", f"bold {WRONG}")
                else:
                    text.append(shown, style).append(" ")
            text.append("\n")
    return _beside(left, right)


def _maze(given: Grid, wanted: Grid) -> RenderableType:
    grid, solved = maze.square(given), maze.square(wanted)
    against = maze.contradicted(grid, solved)
    cells = {
        maze.WALL: ("██", "bright_black"),
        maze.SPACE: ("  ", ""),
        maze.START: ("S ", f"bold white on {maze.FROM}"),
        maze.GOAL: ("G ", f"bold white on {maze.TO}"),
    }
    path = int((solved == maze.PATH).sum())
    text = _text(f"{len(grid)} × {len(grid)}, path of {path} cells")
    for row, line in enumerate(grid.tolist()):
        for column, token in enumerate(line):
            if against[row, column]:
                text.append("?!", f"bold {WRONG}")
            elif solved[row, column] == maze.PATH:
                text.append("o ", f"bold black on {maze.ROUTE}")
            else:
                text.append(*cells[token])
        text.append("\n")
    return text


def _domino(given: Grid, wanted: Grid) -> RenderableType:
    scene = domino.decoded(given, wanted)
    text = _text("table, each tile turned so that equal halves meet")
    left, right = (str(end) if end >= 0 else "–" for end in scene.ends)
    text.append(f"  {left} ← ", "dim")
    for tile, fits in domino.oriented(scene.table, scene.ends[0]):
        text.append(_tile(tile) + ("" if fits else "!"), "" if fits else f"bold {WRONG}")
    text.append("(empty)" if not scene.table else "", "dim")
    text.append(f" → {right}\n", "dim")
    text.append("hand: * can be played, >> the label\n", "dim")
    for tile in scene.hand:
        playable = not scene.table or bool(set(tile) & set(scene.ends))
        chosen = tile == scene.chosen
        mark = (">>" if chosen else "  ") + ("*" if playable else " ")
        style = "bold black on #f2a65a" if chosen else "" if playable else "dim"
        text.append(f"{mark} ").append(_tile(tile), style).append("\n")
    return text.append(f"{domino.move(scene)}\n", "bold")


def _tile(tile: domino.Tile) -> str:
    low, high = (str(value) if value >= 0 else "?" for value in tile)
    return f"[{low}|{high}]"


def _tokens(given: Grid, wanted: Grid) -> RenderableType:
    from rich.console import Group

    columns = columns_of(len(given))
    pair = [row[:MOST] for row in (given, wanted)]
    width = max((len(str(value)) for value in np.concatenate(pair).tolist()), default=1)
    texts = []
    for name, row in zip(("input", "label"), pair, strict=True):
        text = _text(f"{name}, {len(given):,} tokens, 0 is ·")
        for start in range(0, len(row), columns):
            line = row[start : start + columns].tolist()
            text.append(" ".join((str(v) if v else "·").rjust(width) for v in line) + "\n")
        if len(given) > MOST:
            text.append(f"… and {len(given) - MOST:,} more tokens\n", "dim")
        texts.append(text)
    return _beside(*texts) if columns * (width + 1) <= 40 else Group(*texts)
