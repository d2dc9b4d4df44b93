"""A step of 2048 as a picture: a board in SVG, and the same for a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gristmill.macroxue.rules.moves import DIRECTIONS
from gristmill.svg import (
    BOLD,
    END,
    INK,
    MIDDLE,
    RULE,
    SOFT,
    bitmap,
    card,
    small_card,
    small_text,
    text_at,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gristmill.macroxue.format.metadata_db import Run
    from gristmill.macroxue.read.lookup import PackedStep

# The colours of the original game, rank 0 (empty) to 11 (2048); larger tiles share one.
_TILES = (
    *("#cdc1b4", "#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b"),
    *("#edcf72", "#edcc61", "#edc850", "#edc53f", "#edc22e"),
)
_BEYOND = "#3c3a32"
_FRAME, _DARK, _LIGHT = "#bbada0", "#776e65", "#f9f6f2"
_CHOSEN, _OTHER, _GROOVE, _FAINT = "#ff9070", "#c9b8a4", "#485a6e", "#8c98a6"
_CELL, _GAP, _LEFT, _TOP = 46, 6, 22, 22
_SIDE = 4 * _CELL + 5 * _GAP
_ARROWS = "↑↓←→"


def tile_colours(rank: int) -> tuple[str, str]:
    """The colours of a tile as in the original game: background and text."""
    background = _TILES[rank] if rank < len(_TILES) else _BEYOND
    return background, _DARK if rank <= 2 else _LIGHT


def _tiles(ranks: Sequence[int]) -> list[str]:
    """SVG of the cells, row by row: squares with round corners, those of one colour together."""
    squares: dict[str, str] = {}
    numbers: list[str] = []
    for cell, rank in enumerate(ranks):
        x, y = (_LEFT + _GAP + place * (_CELL + _GAP) for place in (cell % 4, cell // 4))
        background, ink = tile_colours(rank)
        # Half of the stroke is outside.
        square = f"M{x + 2} {y + 2}h{_CELL - 4}v{_CELL - 4}h-{_CELL - 4}z"
        squares[background] = squares.get(background, "") + square
        if rank:
            number = str(1 << rank)
            size = {1: 24, 2: 22, 3: 19, 4: 16, 5: 13.5}.get(len(number), 11.5)
            base = y + _CELL / 2 + size * 0.36
            place = f'x="{x + _CELL // 2}" y="{base:g}" font-size="{size:g}"'
            light = "" if ink == _DARK else f' fill="{ink}"'
            numbers.append(f"<text {place}{light}>{number}</text>")
    return [
        '<g stroke-width="4" stroke-linejoin="round">',
        *(f'<path d="{path}" fill="{fill}" stroke="{fill}"/>' for fill, path in squares.items()),
        "</g>",
        *(f'<g fill="{_DARK}"{BOLD}{MIDDLE}>', *numbers, "</g>"),
    ]


def _arrow(move: int) -> str:
    """SVG of an arrowhead in the margin, at the wall to which the tiles are pushed."""
    middle_x, middle_y = _LEFT + _SIDE / 2, _TOP + _SIDE / 2
    distance = _SIDE / 2 + 11
    x, y = ((0, -distance), (0, distance), (-distance, 0), (distance, 0))[move]
    turn = (0, 180, 270, 90)[move]
    return (
        f'<path d="M0-8L26 7H-26Z" fill="{_CHOSEN}"'
        f' transform="translate({middle_x + x:g} {middle_y + y:g}) rotate({turn})"/>'
    )


def bar_lengths(evs: Sequence[float], legal: int, absolute: bool) -> list[float]:
    """Lengths of the bars of four expected values, 0 to 1; 0 for an illegal move.

    absolute: whether the values are chances of 0 to 1, which are the lengths. Otherwise the best
        legal move has length 1 and the worst 0.1, because search values have no natural zero.
    """
    known = [ev for k, ev in enumerate(evs) if legal >> k & 1 and math.isfinite(ev)]
    lengths = []
    for k, ev in enumerate(evs):
        if not legal >> k & 1 or math.isnan(ev):
            lengths.append(0.0)
        elif absolute:
            lengths.append(min(1.0, max(0.0, ev)))
        elif not math.isfinite(ev):
            lengths.append(1.0 if ev > 0 else 0.1)
        elif max(known) == min(known):
            lengths.append(1.0)
        else:
            lengths.append(0.1 + 0.9 * (ev - min(known)) / (max(known) - min(known)))
    return lengths


def _ev_text(ev: float) -> str:
    """An expected value as text that fits next to its bar."""
    return f"{ev:,.3f}" if abs(ev) < 1e9 else f"{ev:.4g}"


def board_svg(
    ranks: Sequence[int],
    move: int,
    evs: Sequence[float],
    legal: int,
    *,
    title: str = "",
    notes: Sequence[str] = (),
    absolute: bool = False,
) -> str:
    """SVG of a board: an arrow for the chosen move, and a bar for each expected value.

    The text has about 2.7 kB. Raises ValueError for another number of ranks or values, and for a
    move above 3.
    """
    if len(ranks) != 16 or len(evs) != 4 or not 0 <= move <= 3:
        raise ValueError("a board has 16 ranks, 4 EVs and a move of 0..3")
    frame = (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" rx="6" fill="{_FRAME}"/>'
    )
    body = [frame, *_tiles(ranks), _arrow(move)]
    left = 2 * _LEFT + _SIDE + 8
    body.append(text_at(left, _TOP + 16, title, 15, INK, BOLD))
    bars = {_GROOVE: "", _OTHER: "", _CHOSEN: ""}
    for k, length in enumerate(bar_lengths(evs, legal, absolute)):
        y = _TOP + 40 + k * 34
        ink = _CHOSEN if k == move else INK
        weight = BOLD if k == move else ""
        allowed = bool(legal >> k & 1)
        name = f"{_ARROWS[k]} {DIRECTIONS[k]}"
        name_ink = ink if allowed or k == move else _FAINT
        body.append(text_at(left, y + 10, name, 13, name_ink, weight))
        value = _ev_text(evs[k]) if allowed else "illegal"
        value_ink = ink if allowed else _FAINT
        body.append(text_at(left + 190, y + 10, value, 13, value_ink, END + weight))
        # The round ends take 3.5 pixels each.
        start = f"M{left + 3.5:g} {y + 18.5:g}h"
        bars[_GROOVE] += f"{start}183"
        if length:
            bars[_CHOSEN if k == move else _OTHER] += f"{start}{max(7, 190 * length) - 7:.1f}"
    paths = (f'<path d="{path}" stroke="{stroke}"/>' for stroke, path in bars.items() if path)
    body += ['<g stroke-width="7" stroke-linecap="round">', *paths, "</g>"]
    for line, note in enumerate(notes):
        body.append(text_at(left, _TOP + 188 + 17 * line, note, 11.5, SOFT))
    return card(left + 190 + _LEFT, _SIDE + 2 * _TOP, title or "board", body)


def safe_name(name: str) -> str:
    """The name of a valuation type, cut to 24 characters, for XML and Markdown.

    name: as in valuation_types.json; each character with a meaning in XML or Markdown becomes ?.
    """
    return re.sub(r"[^\w .+-]", "?", name, flags=re.ASCII)[:24]


def run_text(run: Run) -> str:
    """The facts of a run from metadata.db, in one line."""
    return (
        f"run {run.id}: seed {run.seed}, {run.steps:,} steps, score {run.max_score:,}, highest"
        f" tile {run.highest_tile}"
    )


def step_title(step: PackedStep) -> str:
    """The name of a step in one line: run and step_index."""
    return f"run {step.run.id} · step {step.step_index:,}"


def step_notes(step: PackedStep) -> list[str]:
    """The lines below the bars of a step."""
    return [
        f"{safe_name(step.valuation)} · board_eval {step.board_eval:,}",
        f"run: {step.run.steps:,} steps, score {step.run.max_score:,}",
    ]


def step_svg(step: PackedStep) -> str:
    """`board_svg` of a step of a pack."""
    return board_svg(
        step.ranks,
        step.move,
        step.evs,
        step.legal,
        title=step_title(step),
        notes=step_notes(step),
        absolute=step.valuation.startswith("tuple"),
    )


def small_step_svg(step: PackedStep) -> str:
    """A step of a pack for the overview of its asset: the board and the chosen move."""
    cell, top = 44, 32
    ranks = [min(rank, len(_TILES)) for rank in step.ranks]
    used = sorted(set(ranks))
    squares = [[used.index(rank) for rank in ranks[row : row + 4]] for row in range(0, 16, 4)]
    tiles = [str(1 << rank) if rank else "" for rank in step.ranks]
    # A number is in the middle of six characters; no-break spaces keep their width.
    lines = [
        f"<text y='{row + 0.6:g}' textLength='4'>"
        + "".join(f"{tile:^6}" for tile in tiles[4 * row : 4 * row + 4]).replace(" ", "\xa0")
        + "</text>"
        for row in range(4)
    ]
    walls = "".join(f"M{k} 0v4M0 {k}h4" for k in (1, 2, 3))
    title = f"{step_title(step)} · {_ARROWS[step.move]} {DIRECTIONS[step.move]}"
    return small_card(
        top + 4 * cell + 10,
        [
            small_text(10, 20, title, " font-weight='700'"),
            f"<g transform='translate(10 {top})scale({cell})' style='font:.27px monospace'"
            " fill='#222'>",
            bitmap(squares, [tile_colours(rank)[0] for rank in used], 0, 0, 1),
            f"<path d='{walls}' stroke='{RULE}' stroke-width='.08'/>{''.join(lines)}</g>",
        ],
    )


def step_text(step: PackedStep) -> RenderableType:
    """The picture of a step for a console of rich."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.style import Style
    from rich.table import Table
    from rich.text import Text

    board = Text(no_wrap=True)
    for row in range(4):
        for half in range(3):
            for rank in step.ranks[4 * row : 4 * row + 4]:
                background, ink = tile_colours(rank)
                shown = str(1 << rank) if rank and half == 1 else ""
                board.append(f"{shown:^8}", Style(color=ink, bgcolor=background, bold=True))
            board.append("\n")
    bars = Table(box=None, show_header=False, padding=(0, 1))
    lengths = bar_lengths(step.evs, step.legal, step.valuation.startswith("tuple"))
    for k, length in enumerate(lengths):
        allowed = bool(step.legal >> k & 1)
        style = "bold red" if k == step.move else ("" if allowed else "dim")
        bars.add_row(
            Text(f"{_ARROWS[k]} {DIRECTIONS[k]}", style),
            Text("█" * round(20 * length) + "·" * (20 - round(20 * length)), style),
            Text(_ev_text(step.evs[k]) if allowed else "illegal", style, justify="right"),
        )
    facts = [f"row {step.row:,}", *step_notes(step)]
    facts.append(f"seed {step.run.seed}, highest tile {step.run.highest_tile:,}")
    heading = Text(step_title(step), "bold")
    side = Group(heading, Text(), bars, Text(), *(Text(fact, "dim") for fact in facts))
    return Columns([board, side], padding=(0, 3))
