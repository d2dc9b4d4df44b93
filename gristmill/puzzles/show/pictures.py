"""Pictures that are no grid of cells: a domino hand, and the tokens of any row as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.show.cells import (
    LEFT,
    PAPER,
    SMALL_TOP,
    TOP,
    WRONG,
    Grid,
    beside,
    captioned,
    filled,
    sheet,
    small_sheet,
)
from gristmill.svg import END, MIDDLE, SOFT, WIDEST, text_at

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


TABLE: Final = 56
HAND: Final = 70
LENGTH: Final = 72
POSITIONS: Final = {0: "no move", 1: "left", 2: "right", 3: "first"}
"""What the third label means."""
CHOSEN: Final = "#f2a65a"
_EDGE: Final = "#776e65"
_TILE: Final = 24
"""Side of half a tile."""
_ROW: Final = 7
"""Tiles in a line of the chain."""
_LINE: Final = 40
# Places of pips on a square from -1 to 1.
_PIPS: Final = {
    0: (),
    1: ((0, 0),),
    2: ((-1, -1), (1, 1)),
    3: ((-1, -1), (0, 0), (1, 1)),
    4: ((-1, -1), (1, -1), (-1, 1), (1, 1)),
    5: ((-1, -1), (1, -1), (0, 0), (-1, 1), (1, 1)),
    6: ((-1, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (1, 1)),
}

Tile = tuple[int, int]


class Hand(NamedTuple):
    """What the 72 positions say. Values of pips are 0 to 6; a half without a token is -1.

    position: where it goes, a key of POSITIONS. rest: label tokens after these that are not 0.
    """

    table: list[Tile]
    hand: list[Tile]
    ends: Tile
    chosen: Tile
    position: int
    rest: int

    def large(self, title: str = "", notes: Sequence[str] = ()) -> str:
        """Tiles of the chain are turned so that equal halves meet; one that does not fit is red."""
        chain = oriented(self.table, self.ends[0])
        columns = max(_ROW if len(chain) > _ROW else len(chain), 7, len(self.hand))
        step = 2 * _TILE + 6
        wide = columns * step + 2 * 28
        body: list[str] = []
        lines = max(1, -(-len(chain) // _ROW))
        for number, (tile, fits) in enumerate(chain):
            x = LEFT + 28 + number % _ROW * step
            y = TOP + number // _ROW * _LINE
            body += _tile(tile, x, y, WRONG if not fits else _EDGE, PAPER)
        body += _ends(self, len(chain), step)
        below = TOP + lines * _LINE + 24
        body.append(text_at(LEFT, below - 8, _hand_caption(self), 11, SOFT))
        marked = False
        for number, tile in enumerate(self.hand):
            is_chosen = not marked and tile == self.chosen
            marked = marked or is_chosen
            x = LEFT + 28 + number * step
            body += _tile(tile, x, below, _EDGE, CHOSEN if is_chosen else PAPER)
        table = f"{len(chain)} tile{'s' * (len(chain) != 1)} on the table"
        return sheet(
            wide,
            below + _TILE + 4 - TOP,
            body,
            title=title,
            captions=[(float(LEFT), table)],
            notes=notes,
            label=f"Domino hand {title}".strip(),
        )

    def small(self, title: str) -> str:
        """The tiles of the hand, the one of the label in its colour."""
        tiles, chosen = "", ""
        numbers = []
        for place, tile in enumerate(self.hand):
            x, y = 10 + place % 4 * 52, 2 + place // 4 * 32
            outline = f"M{x} {y}h48v24h-48z"
            tiles += outline
            chosen = outline if tile == self.chosen else chosen
            low, high = (str(half) if half >= 0 else "?" for half in tile)
            numbers.append(f"<text x='{x + 12} {x + 36}' y='{y + 17}'>{low}{high}</text>")
        ends = " and ".join(str(end) if end >= 0 else "–" for end in self.ends)
        body = [
            f"<g transform='translate(0 {SMALL_TOP})'><path d='{tiles}' fill='{PAPER}'/>",
            f"<path d='{chosen}' fill='{CHOSEN}'/>",
            f"<g font-size='14' fill='#222' text-anchor='middle'>{''.join(numbers)}</g></g>",
        ]
        note = f"ends {ends} · {move(self)}"
        return small_sheet(32 * max(1, -(-len(self.hand) // 4)), title, note, body)

    def in_terminal(self) -> RenderableType:
        """A line for the chain, and one for each tile of the hand."""
        text = captioned("table, each tile turned so that equal halves meet")
        left, right = (str(end) if end >= 0 else "–" for end in self.ends)
        text.append(f"  {left} ← ", "dim")
        for tile, fits in oriented(self.table, self.ends[0]):
            text.append(_tile_text(tile) + ("" if fits else "!"), "" if fits else f"bold {WRONG}")
        text.append("(empty)" if not self.table else "", "dim")
        text.append(f" → {right}\n", "dim")
        text.append("hand: * can be played, >> the label\n", "dim")
        for tile in self.hand:
            playable = not self.table or bool(set(tile) & set(self.ends))
            chosen = tile == self.chosen
            mark = (">>" if chosen else "  ") + ("*" if playable else " ")
            style = f"bold black on {CHOSEN}" if chosen else "" if playable else "dim"
            text.append(f"{mark} ").append(_tile_text(tile), style).append("\n")
        return text.append(f"{move(self)}\n", "bold")


def decoded(inputs: npt.ArrayLike, labels: npt.ArrayLike) -> Hand:
    """The hand of a row.

    inputs, labels: integer [72].

    Slots with a token in neither half are left out.
    """
    given, wanted = (tokens(row) for row in (inputs, labels))
    pips = (given - 1).tolist()

    def tiles(first: int, end: int) -> list[Tile]:
        pairs = [(pips[at], pips[at + 1]) for at in range(first, end, 2)]
        return [pair for pair in pairs if pair != (-1, -1)]

    return Hand(
        table=tiles(0, TABLE),
        hand=tiles(TABLE, HAND),
        ends=(pips[HAND], pips[HAND + 1]),
        chosen=(int(wanted[0]) - 1, int(wanted[1]) - 1),
        position=int(wanted[2]),
        rest=int((wanted[3:] != 0).sum()),
    )


def oriented(table: Sequence[Tile], left: int) -> list[tuple[Tile, bool]]:
    """The tiles of a chain turned so that equal halves meet, each with whether it fits.

    A tile that does not continue the chain stays as it is stored.
    """
    turned: list[tuple[Tile, bool]] = []
    end = left
    for low, high in table:
        fits = end in (low, high)
        tile = (high, low) if fits and end != low else (low, high)
        turned.append((tile, fits))
        end = tile[1]
    return turned


def move(scene: Hand) -> str:
    """The move of a label in words."""
    position = POSITIONS.get(scene.position, f"position {scene.position}")
    if scene.position == 0 and -1 in scene.chosen:
        return "no move"
    low, high = (value if value >= 0 else "?" for value in scene.chosen)
    return f"play {low}-{high} {position}"


def _hand_caption(scene: Hand) -> str:
    missing = "" if scene.chosen in scene.hand or scene.chosen == (-1, -1) else " (not in the hand)"
    count = len(scene.hand)
    return f"{count} tile{'s' * (count != 1)} in the hand · {move(scene)}{missing}"


def _ends(scene: Hand, count: int, step: int) -> list[str]:
    if not count:
        dots = f'<rect x="{LEFT + 28}" y="{TOP}" width="{2 * _TILE}" height="{_TILE}" rx="4"'
        return [f'{dots} fill="none" stroke="{SOFT}" stroke-dasharray="3 3"/>']
    last = count - 1
    right = LEFT + 28 + (last % _ROW + 1) * step
    y = TOP + last // _ROW * _LINE + 18
    parts = [
        text_at(LEFT + 20, TOP + 18, _end(scene.ends[0]), 13, SOFT, END),
        text_at(right + 2, y, _end(scene.ends[1]), 13, SOFT),
    ]
    arrow = f'stroke="{CHOSEN}" stroke-width="2.5" fill="none"'
    if scene.position == 1:
        parts.append(f'<path d="M{LEFT + 18} {TOP + 31}h-14m5 -5l-5 5l5 5" {arrow}/>')
    if scene.position == 2:
        parts.append(f'<path d="M{right} {y + 13}h14m-5 -5l5 5l-5 5" {arrow}/>')
    return parts


def _end(value: int) -> str:
    return str(value) if value >= 0 else "–"


def _tile(tile: Tile, x: float, y: float, edge: str, fill: str) -> list[str]:
    parts = [
        f'<rect x="{x:g}" y="{y:g}" width="{2 * _TILE}" height="{_TILE}" rx="4" fill="{fill}"'
        f' stroke="{edge}" stroke-width="1.4"/>',
        f'<path d="M{x + _TILE:g} {y + 3:g}v{_TILE - 6}" stroke="{edge}" stroke-width="1"/>',
    ]
    for half, value in enumerate(tile):
        centre, middle = x + _TILE * (half + 0.5), y + _TILE / 2
        if value not in _PIPS:
            parts.append(text_at(centre, middle + 5, "?", 14, WRONG, MIDDLE))
        elif _PIPS[value]:
            dots = "".join(f"M{centre + 6 * a:g} {middle + 6 * b:g}h0" for a, b in _PIPS[value])
            parts.append(
                f'<path d="{dots}" stroke="#2d2823" stroke-width="4.6" stroke-linecap="round"/>'
            )
    return parts


def _tile_text(tile: Tile) -> str:
    low, high = (str(value) if value >= 0 else "?" for value in tile)
    return f"[{low}|{high}]"
