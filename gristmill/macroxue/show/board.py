"""The board of a step as a picture, in SVG and for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gristmill.svg import RULE, bitmap, small_card, small_text

if TYPE_CHECKING:
    from rich.text import Text

# The colours of the original game, rank 0 (empty) to 11 (2048); larger tiles share one.
_TILES: Final = (
    *("#cdc1b4", "#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b"),
    *("#edcf72", "#edcc61", "#edc850", "#edc53f", "#edc22e", "#3c3a32"),
)
_DARK, _LIGHT = "#776e65", "#f9f6f2"


def board_svg(title: str, ranks: Sequence[int]) -> str:
    """A board of 16 ranks, row by row; with a short title it fits the overview of an asset."""
    cell, top = 44, 32
    colours = [min(rank, len(_TILES) - 1) for rank in ranks]
    used = sorted(set(colours))
    squares = [[used.index(rank) for rank in colours[row : row + 4]] for row in range(0, 16, 4)]
    tiles = [str(1 << rank) if rank else "" for rank in ranks]
    # A number is in the middle of six characters; no-break spaces keep their width.
    lines = [
        f"<text y='{row + 0.6:g}' textLength='4'>"
        + "".join(f"{tile:^6}" for tile in tiles[4 * row : 4 * row + 4]).replace(" ", "\xa0")
        + "</text>"
        for row in range(4)
    ]
    walls = "".join(f"M{k} 0v4M0 {k}h4" for k in (1, 2, 3))
    return small_card(
        top + 4 * cell + 10,
        [
            small_text(10, 20, title, " font-weight='700'"),
            f"<g transform='translate(10 {top})scale({cell})' style='font:.27px monospace'"
            " fill='#222'>",
            bitmap(squares, [_TILES[rank] for rank in used], 0, 0, 1),
            f"<path d='{walls}' stroke='{RULE}' stroke-width='.08'/>{''.join(lines)}</g>",
        ],
    )


def board_text(ranks: Sequence[int]) -> Text:
    """A board for a console of rich: three lines a row, in the colours of the tiles."""
    from rich.style import Style
    from rich.text import Text

    board = Text(no_wrap=True)
    for line in range(12):
        for rank in ranks[line // 3 * 4 : line // 3 * 4 + 4]:
            shown = str(1 << rank) if rank and line % 3 == 1 else ""
            ink, ground = _DARK if rank <= 2 else _LIGHT, _TILES[min(rank, len(_TILES) - 1)]
            board.append(f"{shown:^8}", Style(color=ink, bgcolor=ground, bold=True))
        board.append("\n")
    return board
