"""A domino hand as SVG: the chain on the table, the hand, and the move of the label.

Source: `docs/formats/puzzles.md#domino`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy.typing as npt

from gristmill.puzzles.show.sheet import LEFT, PAPER, TOP, WRONG, sheet, tokens
from gristmill.svg import END, MIDDLE, SOFT, text_at

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

    table: tiles from left to right, as stored. hand: the player's tiles.
    ends: values of the chain's ends. chosen: the tile of the label.
    position: where it goes, a key of POSITIONS. rest: label tokens after these that are not 0.
    """

    table: list[Tile]
    hand: list[Tile]
    ends: Tile
    chosen: Tile
    position: int
    rest: int


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


def domino_svg(
    inputs: npt.ArrayLike, labels: npt.ArrayLike, *, title: str = "", notes: Sequence[str] = ()
) -> str:
    """Draw the chain, the hand, and which tile is played where.

    inputs, labels: integer [72]: 28 table tiles, 7 hand tiles, both ends; tile and position.
    title: line above the chain. notes: lines below the hand. Both default to nothing.

    Tiles of the chain are turned so that equal halves meet; one that does not fit is red. The
    label's tile in the hand is marked. The SVG takes 3 to 12 kB.
    """
    scene = decoded(inputs, labels)
    chain = oriented(scene.table, scene.ends[0])
    columns = max(_ROW if len(chain) > _ROW else len(chain), 7, len(scene.hand))
    step = 2 * _TILE + 6
    wide = columns * step + 2 * 28
    body: list[str] = []
    lines = max(1, -(-len(chain) // _ROW))
    for number, (tile, fits) in enumerate(chain):
        x = LEFT + 28 + number % _ROW * step
        y = TOP + number // _ROW * _LINE
        body += _tile(tile, x, y, WRONG if not fits else _EDGE, PAPER)
    body += _ends(scene, len(chain), step)
    below = TOP + lines * _LINE + 24
    body.append(text_at(LEFT, below - 8, _hand_caption(scene), 11, SOFT))
    marked = False
    for number, tile in enumerate(scene.hand):
        is_chosen = not marked and tile == scene.chosen
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
