"""What the pictures of puzzles share: runs of cells, lines between cells, a sheet with a title.

See also `picture.py`: which picture a kind of puzzle has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.printable import printable
from gristmill.svg import BOLD, INK, SOFT, card, fitted, text_at

Grid = npt.NDArray[np.int64]

LEFT: Final = 16
TOP: Final = 54
"""Where drawings start below the title and the captions."""
PAPER: Final = "#f3ecdc"
"""Of boards and tiles."""
WRONG: Final = "#e5303c"
"""What breaks the rules of its puzzle."""
_CHARACTER: Final = 0.56
_NOTE: Final = 11
_NOTE_LINES: Final = 3
_NARROWEST: Final = 270


def tokens(row: npt.ArrayLike) -> Grid:
    """A row of a dataset as int64 [seq_len], in which no arithmetic of pictures overflows."""
    return np.asarray(row).astype(np.int64).reshape(-1)


def cells(mask: npt.NDArray[np.bool_], left: float, top: float, size: float) -> str:
    """The SVG path of the true cells of a grid, one rectangle for each run in a row.

    mask: bool [rows, columns].
    left, top: corner of the grid. size: of a cell.
    """
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    steps = np.diff(padded, axis=1)
    rows, starts = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    return "".join(
        f"M{left + size * start:g} {top + size * row:g}h{size * (end - start):g}"
        f"v{size:g}h-{size * (end - start):g}z"
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
    )


def filled(
    mask: npt.NDArray[np.bool_], left: float, top: float, size: float, fill: str, more: str = ""
) -> str:
    """The true cells of a grid as one SVG element; empty where no cell is true.

    Arguments as for `cells`. fill: colour. more: further attributes.
    """
    if not mask.any():
        return ""
    return f'<path d="{cells(mask, left, top, size)}" fill="{fill}"{more}/>'


def lattice(
    rows: int, columns: int, left: float, top: float, size: float, stroke: str, width: float = 0.5
) -> str:
    """The lines of a grid of cells as one SVG element."""
    wide, tall = size * columns, size * rows
    path = "".join(f"M{left:g} {top + size * row:g}h{wide:g}" for row in range(rows + 1))
    path += "".join(f"M{left + size * column:g} {top:g}v{tall:g}" for column in range(columns + 1))
    return f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width:g}"/>'


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text on at most three lines, the last one cut to what fits.

    Arguments as for `svg.fitted`.
    """
    most = max(4, int(width / (size * _CHARACTER)))
    lines = wrap(text[: most * (_NOTE_LINES + 1)], most) or [""]
    if len(lines) > _NOTE_LINES:
        lines[_NOTE_LINES - 1 :] = [f"{lines[_NOTE_LINES - 1][: most - 1]}…"]
    return lines


def sheet(
    wide: float,
    tall: float,
    body: Iterable[str],
    *,
    title: str,
    captions: Sequence[tuple[float, str]],
    notes: Sequence[str],
    label: str,
) -> str:
    """A whole picture: title, captions, drawing, notes.

    wide, tall: of the drawing, which starts at (LEFT, TOP).
    body: its SVG elements.
    title: line above it. captions: where each starts, and its text. notes: paragraphs below it.
    label: what a screen reader says.
    """
    width = max(int(wide) + 2 * LEFT, _NARROWEST)
    room = width - 2 * LEFT
    lines = [line for note in notes for line in wrapped(note, room, _NOTE)]
    height = TOP + int(tall) + 14 + 16 * len(lines) + (2 if lines else 0)
    parts = [text_at(LEFT, 24, fitted(title, room, 13), 13, INK, BOLD)]
    parts += [text_at(x, TOP - 8, caption, 11, SOFT) for x, caption in captions]
    parts += body
    for number, line in enumerate(lines):
        y = TOP + tall + 20 + 16 * number
        parts.append(text_at(LEFT, y, line, _NOTE, SOFT))
    return card(width, height, label, parts)


def lines_of(texts: Sequence[str], most: int = 4) -> list[str]:
    """The first of some texts on printable lines, and how many more there are."""
    kept = [printable(text) for text in texts[:most]]
    if len(texts) > most:
        kept.append(f"… and {len(texts) - most} more")
    return kept
