"""What each kind of puzzle draws of an example; a table of tokens for all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.domains.arc_grid import COLOURS, EOS, FIRST_COLOUR, PAD
from gristmill.puzzles.domains.arc_grid import SIDE as ARC_SIDE
from gristmill.puzzles.domains.domino_rows import SEQ_LEN as DOMINO_LENGTH
from gristmill.puzzles.domains.grid import Symbols, extents
from gristmill.puzzles.domains.maze_grid import GOAL, OPEN, PATH, START, WALL, side_of
from gristmill.puzzles.show.cells import WRONG, Drawing, Drawn, Grid, Lines, Look, Mask, Panel
from gristmill.puzzles.show.pictures import FILLS, TokenTable, decoded, tokens
from gristmill.svg import MIN_TEXT, SOFT

ARC_PALETTE: Final = (
    *("#111111", "#1e78d6", "#f04438", "#33b74a", "#f7d417"),
    *("#a6a6a6", "#e321b2", "#f88a2a", "#83d3f2", "#86172b"),
)
"""Colours 0 to 9 of ARC."""
BORDER: Final = "#d9cdb4"
"""Of EOS tokens."""
_DARK: Final = (0, 1, 2, 6, 9)
"""Colours of ARC on which a digit must be white."""
_ARC_LOOKS: Final = (
    Look(),
    Look(BORDER, "· ", "dim"),
    *(
        Look(fill, f"{colour} ", f"{'white' if colour in _DARK else 'black'} on {fill}")
        for colour, fill in enumerate(ARC_PALETTE)
    ),
    Look("#ffffff", "? ", f"bold {WRONG}", more=f' stroke="{WRONG}" stroke-width="2"'),
)
"""By token; the last one is of all other tokens."""
WALLS, ROUTE, _FROM, _TO = "#4a4038", "#f2a65a", "#2e8b57", "#c0392b"
_MAZE_LOOKS: Final = (
    Look(),
    Look(WALLS, "██", "bright_black"),
    Look(ROUTE, "o ", f"bold black on {ROUTE}"),
    Look(_FROM, "S ", f"bold white on {_FROM}", letter="S"),
    Look(_TO, "G ", f"bold white on {_TO}", letter="G"),
    Look(WRONG, "?!", f"bold {WRONG}"),
)
_LARGEST: Final = 110
SUDOKU_SIDE: Final = 9
_BLANK: Final = 1
GIVEN, ADDED = "#1f2328", "#1668b8"
_SUDOKU_LOOKS: Final = (
    Look("#dccfae", " ", "bold", f'fill="{GIVEN}" font-weight="700"'),
    Look("", " ", "bright_blue", f'fill="{ADDED}"'),
    Look("#fbd9d7", "!", f"bold {WRONG}", f'fill="{WRONG}" font-weight="700"'),
)


def arc(inputs: npt.ArrayLike, labels: npt.ArrayLike) -> Drawing:
    """The input and the output of an example of ARC, each with its EOS border.

    inputs, labels: integer [900], tokens row by row: 0 PAD, 1 EOS, 2 to 11 the colours 0 to 9.

    Rows and columns around the grids that have only PAD in both are left out; the captions say
    where a grid begins that is not at the first cell. Other tokens have a red border.
    """
    grids = [tokens(row).reshape(ARC_SIDE, ARC_SIDE) for row in (inputs, labels)]
    window = extent(grids)
    rows, columns = grids[0][window].shape
    sizes, panels = [], []
    for name, grid in zip(("input", "output"), grids, strict=True):
        has_colour = grid > EOS
        held = extent([has_colour])
        high, wide = has_colour[held].shape
        row, column = held[0].start, held[1].start
        place = f" at ({row}, {column})" if row or column else ""
        sizes.append(f"{high} × {wide}" if has_colour.any() else "without colours")
        corner = row - window[0].start, column - window[1].start
        lines = [Lines(high, wide, "#6d6d6d", *corner)] if has_colour.any() else []
        shown = np.where((grid < PAD) | (grid >= FIRST_COLOUR + COLOURS), -1, grid)[window]
        panels.append(
            Panel(
                f"{name} {sizes[-1]}{place}",
                np.where(shown < 0, len(_ARC_LOOKS) - 1, shown),
                _ARC_LOOKS,
                lines,
                ' stroke="#d8cfbd" stroke-width="1"',
            )
        )
    size = max(5, min(20, 210 // max(rows, columns)))
    return Drawing("ARC pair", " → ".join(sizes), panels, size, gap=26, arrow=True)


def extent(grids: Sequence[npt.NDArray[np.generic]]) -> tuple[slice, slice]:
    """The rows and columns around all cells that are not 0, one cell at least."""
    used = np.any([grid != 0 for grid in grids], axis=0)
    rows, columns = np.nonzero(used.any(axis=1))[0], np.nonzero(used.any(axis=0))[0]
    if not len(rows):
        return slice(0, 1), slice(0, 1)
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def maze(inputs: npt.ArrayLike, labels: npt.ArrayLike) -> Drawing:
    """A maze with the path of the label in it.

    inputs, labels: integer [n * n], tokens row by row: 1 wall, 2 space, 3 start, 4 goal, 5 path.

    Cells in which the label contradicts the input are red: the label may only make path of space.
    Raises ValueError where the number of tokens is no square.
    """
    given, solved = square(tokens(inputs)), square(tokens(labels))
    side = len(given)
    size = max(3, min(24, 330 // side))
    route = solved == PATH
    classes = [given == WALL, route, given == START, given == GOAL, contradicted(given, solved)]
    caption = f"{side} × {side}, path of {int(route.sum())}"
    without_letters = " from green to red" if size * 0.9 < MIN_TEXT else ""
    panel = Panel(
        f"{caption} cells{without_letters}",
        _last_of(classes),
        _MAZE_LOOKS,
        frame=f' stroke="{SOFT}" stroke-width="1"',
        terminal_caption=f"{caption} cells",
    )
    return Drawing("Maze", caption, [panel], size)


def _last_of(classes: Sequence[Mask]) -> Grid:
    """The number of the last class that has a cell, from 1; 0 for cells of none."""
    found = np.zeros(classes[0].shape, np.int64)
    for number, mask in enumerate(classes, 1):
        found[mask] = number
    return found


def square(row: Grid) -> Grid:
    """Tokens as a square grid. Raises ValueError where their number is no square."""
    side = side_of(len(row))
    if side is None:
        raise ValueError(f"{len(row)} tokens are no square")
    return row.reshape(side, side)


def contradicted(given: Grid, solved: Grid) -> Mask:
    """The cells, bool [n, n], in which a label differs otherwise than by path for space.

    given, solved: tokens [n, n] of an input and its label. Unknown tokens are among them.
    """
    unknown = (given < WALL) | (given > GOAL)
    found: Mask = unknown | ((given != solved) & ~((given == OPEN) & (solved == PATH)))
    return found


def sudoku(inputs: npt.ArrayLike, labels: npt.ArrayLike) -> Drawing:
    """The givens of a Sudoku, and its solution, where givens and filled digits differ.

    inputs, labels: integer [81], tokens row by row: 1 blank, 2 to 10 the digits 1 to 9.

    Givens are bold on a ground of their own. A cell of the solution is red that its given
    contradicts, whose digit is twice in its row, column or box, or that has no digit; tokens
    outside the vocabulary are `?`.
    """
    given, solution = (tokens(row).reshape(SUDOKU_SIDE, SUDOKU_SIDE) for row in (inputs, labels))
    is_given = given > _BLANK
    is_digit = (solution > _BLANK) & (solution <= SUDOKU_SIDE + 1)
    wrong = twice(solution) | (is_given & (given != solution)) | ~is_digit
    count = f"{int(is_given.sum())} givens"
    filled_in = f"solution, {int((~is_given).sum())} digits filled in"
    lines = [
        Lines(SUDOKU_SIDE, SUDOKU_SIDE, "#b9ad9b"),
        Lines(SUDOKU_SIDE, SUDOKU_SIDE, "#4a4038", step=3, width=1.6),
    ]
    panels = [
        Panel(
            caption,
            np.where(red, 2, np.where(is_given, 0, 1)),
            _SUDOKU_LOOKS,
            lines,
            texts=[[digit(token) for token in line] for line in grid.tolist()],
            terminal_caption=terminal_caption,
        )
        for caption, terminal_caption, grid, red in (
            (count, count, given, twice(given)),
            (filled_in, "solution, givens bold, ! against the rules", solution, wrong),
        )
    ]
    return Drawing("Sudoku", count, panels, 23, gap=24, block=3)


def digit(token: int) -> str:
    """A token as people read it: a digit, nothing for a blank or PAD, `?` for all others."""
    if token in (0, _BLANK):
        return ""
    return str(token - 1) if _BLANK < token <= SUDOKU_SIDE + 1 else "?"


def twice(board: Grid) -> Mask:
    """The cells whose digit is twice in their row, column or box, bool [9, 9].

    board: tokens [9, 9]; blanks and PAD are never twice.
    """
    tokens_of = board.reshape(-1)
    row, column = np.divmod(np.arange(len(tokens_of)), SUDOKU_SIDE)
    box = row // 3 * 3 + column // 3
    peers = (row[:, None] == row) | (column[:, None] == column) | (box[:, None] == box)
    same = (tokens_of[:, None] == tokens_of) & peers & ~np.eye(len(tokens_of), dtype=bool)
    found: Mask = same.any(axis=1).reshape(board.shape) & (board > _BLANK)
    return found


_OF_CELLS: Final[dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], Drawing]]] = {
    "arc": arc,
    "sudoku": sudoku,
    "maze": maze,
}


def grid(inputs: npt.ArrayLike, labels: npt.ArrayLike, config: Mapping[str, Any]) -> Drawing:
    """The input and the output of an example of grids, a colour for each token.

    inputs, labels: integer [height * width], tokens row by row. config: of the dataset.

    Rows and columns below and to the right of both grids are left out. Tokens that are none of the
    alphabet have a red border. Raises ValueError where the tokens are no rows of the config.
    """
    texts = Symbols.of(config["alphabet"], config["values"], config["pad"]).texts
    grids = [tokens(row).reshape(_sides(config)) for row in (inputs, labels)]
    sizes = [tuple(extents(each[None])[0].tolist()) for each in grids]
    rows, columns = (max(1, *of) for of in zip(*sizes, strict=True))
    windows = [each[:rows, :columns] for each in grids]
    used = np.unique(windows).tolist()
    looks = [_look_of(token, texts) for token in used]
    panels = [
        Panel(
            f"{name} {high} × {wide}",
            np.searchsorted(used, cells),
            looks,
            [Lines(high, wide, "#8a8378")],
            ' stroke="#d8cfbd" stroke-width="1"',
        )
        for name, cells, (high, wide) in zip(("input", "output"), windows, sizes, strict=True)
    ]
    size = max(5, min(20, 210 // max(rows, columns)))
    note = " → ".join(f"{high} × {wide}" for high, wide in sizes)
    return Drawing("Grids", note, panels, size, gap=26, arrow=True)


def _look_of(token: int, texts: Sequence[str]) -> Look:
    """How a token of grids looks. texts: of the tokens, see `Symbols`."""
    if not token:
        return Look()
    if not 0 <= token < len(texts):
        return Look("#ffffff", "? ", f"bold {WRONG}", more=f' stroke="{WRONG}" stroke-width="2"')
    fill = FILLS[token % len(FILLS)]
    return Look(fill, texts[token][-2:].ljust(2), f"black on {fill}")


def _sides(config: Mapping[str, Any]) -> tuple[int, int]:
    return int(config.get("height") or 0), int(config.get("width") or 0)


def drawing(
    kind: str,
    inputs: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> Drawn:
    """What is drawn of an example.

    kind: of the puzzle, as in `trace/sources.json`. inputs, labels: integer [seq_len].
    config: of the dataset, which says what the tokens of grids are; default: nothing.

    Other kinds, and rows of another length than their kind has, are tables of tokens.
    """
    count = len(tokens(inputs))
    side = side_of(count) or 0
    fits = {
        "arc": side == ARC_SIDE,
        "sudoku": side == SUDOKU_SIDE,
        "maze": 0 < side <= _LARGEST,
        "domino": count == DOMINO_LENGTH,
        "grid": max(_sides(config)) <= _LARGEST and count == prod(_sides(config)),
    }
    if not fits.get(kind):
        return TokenTable(tokens(inputs), tokens(labels))
    if kind == "grid":
        return grid(inputs, labels, config)
    return decoded(inputs, labels) if kind == "domino" else _OF_CELLS[kind](inputs, labels)
