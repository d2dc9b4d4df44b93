"""Any row as a table of its tokens, for kinds of puzzles that have no picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.show.cells import LEFT, PAPER, TOP, Grid, beside, captioned, filled, sheet
from gristmill.svg import SOFT, WIDEST

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS: Final = 24
"""Tokens in a line where their number is no square."""
MOST: Final = 1_024
"""Tokens of a row that are shown."""
FILLS: Final = (
    "#f7dfa8",
    "#cfe6c9",
    "#cbdff5",
    "#f6d0c8",
    "#e2d4f0",
    "#c8ebe6",
    "#e8e0d0",
    "#f5cfe3",
)
"""Grounds of tokens, in turn; token 0 has none."""
_SIZE: Final = 16
_FONT: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def columns_of(count: int) -> int:
    """Tokens in a line: the side of a square up to 32 by 32, COLUMNS otherwise."""
    side = isqrt(count)
    return side if 0 < side <= 32 and side * side == count else COLUMNS


def tokens(row: npt.ArrayLike) -> Grid:
    """A row of a dataset as int64 [seq_len], in which no arithmetic of pictures overflows."""
    return np.asarray(row).astype(np.int64).reshape(-1)


@dataclass(frozen=True)
class TokenTable:
    """The tokens of an example as numbers, input above label.

    Shows the first 1,024 tokens; 0 is a dot.
    """

    inputs: Grid
    labels: Grid

    def large(self, title: str = "", notes: Sequence[str] = ()) -> str:
        """Each token has a ground of its own colour."""
        pair, count = (self.inputs, self.labels), len(self.inputs)
        shown = [row[:MOST] for row in pair]
        digits = max((len(str(value)) for row in shown for value in row.tolist()), default=1)
        cell = max(13, 7 * digits + 4)
        room = WIDEST - 2 * LEFT
        columns = min(columns_of(count), room // cell)
        lines = max(1, -(-len(shown[0]) // columns))
        body: list[str] = []
        captions: list[tuple[float, str]] = []
        wide = cell * columns
        beside = 2 * wide + 24 <= room
        captions.append((float(LEFT), f"input, {count:,} tokens"))
        body += _table(shown[0], columns, LEFT, TOP, cell)
        if beside:
            left, top = LEFT + wide + 24, float(TOP)
            captions.append((float(left), "label"))
        else:
            left, top = LEFT, TOP + _SIZE * lines + 26.0
            body.append(
                f'<text x="{LEFT}" y="{top - 8:g}" font-size="11" fill="{SOFT}">label</text>'
            )
        body += _table(shown[1], columns, left, top, cell)
        more = [f"… and {count - MOST:,} more tokens"] if count > MOST else []
        return sheet(
            2 * wide + 24 if beside else wide,
            top - TOP + _SIZE * lines,
            body,
            title=title,
            captions=captions,
            notes=[*more, *notes],
            label=f"Tokens {title}".strip(),
        )

    def small(self, title: str) -> None:
        """There is none."""

    def in_terminal(self) -> RenderableType:
        """The same numbers."""
        from rich.console import Group

        columns = columns_of(len(self.inputs))
        pair = [row[:MOST] for row in (self.inputs, self.labels)]
        width = max((len(str(value)) for value in np.concatenate(pair).tolist()), default=1)
        texts = []
        for name, row in zip(("input", "label"), pair, strict=True):
            text = captioned(f"{name}, {len(self.inputs):,} tokens, 0 is ·")
            for start in range(0, len(row), columns):
                line = row[start : start + columns].tolist()
                text.append(" ".join((str(v) if v else "·").rjust(width) for v in line) + "\n")
            if len(self.inputs) > MOST:
                text.append(f"… and {len(self.inputs) - MOST:,} more tokens\n", "dim")
            texts.append(text)
        return beside(*texts) if columns * (width + 1) <= 40 else Group(*texts)


def _table(row: Grid, columns: int, left: float, top: float, cell: float) -> list[str]:
    lines = max(1, -(-len(row) // columns))
    padded = np.zeros(lines * columns, np.int64)
    padded[: len(row)] = row
    grid: Grid = padded.reshape(lines, columns)
    body = [
        f'<rect x="{left:g}" y="{top:g}" width="{cell * columns:g}" height="{_SIZE * lines:g}"'
        f' fill="{PAPER}" stroke="#d8cfbd"/>'
    ]
    # Cells are as wide as their numbers: the path of square cells is stretched.
    stretch = f' transform="translate({left:g} {top:g}) scale({cell / _SIZE:g} 1)"'
    for number, fill in enumerate(FILLS):
        mask = (grid != 0) & (grid % len(FILLS) == number)
        body.append(filled(mask, 0, 0, _SIZE, fill, stretch))
    body.append(f'<g font-family="{_FONT}" font-size="11" fill="#3a332d" text-anchor="middle">')
    for number in range(lines):
        line = row[number * columns : (number + 1) * columns].tolist()
        y = top + _SIZE * number + 11.5
        body += [
            f'<text x="{left + cell * (at + 0.5):g}" y="{y:g}">{value}</text>'
            for at, value in enumerate(line)
            if value
        ]
    body.append("</g>")
    return body
