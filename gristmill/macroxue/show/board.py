"""How a step of 2048 looks: a board as SVG, and the same for a terminal.

Which steps of a pack are worth a look is decided in `preview.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gristmill.macroxue.rules.moves import DIRECTIONS
from gristmill.svg import BOLD, END, MIDDLE, card, text_at

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gristmill.macroxue.format.metadata_db import Run
    from gristmill.macroxue.read.lookup import PackedStep

# The original game's colours, rank 0 (empty) to 11 (2048); larger tiles share one.
_TILES = (
    *("#cdc1b4", "#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b"),
    *("#edcf72", "#edcc61", "#edc850", "#edc53f", "#edc22e"),
)
_BEYOND = "#3c3a32"
_FRAME, _DARK, _LIGHT = "#bbada0", "#776e65", "#f9f6f2"
_CHOSEN, _OTHER, _GROOVE, _FAINT = "#f65e3b", "#c9b8a4", "#ece4d8", "#b3a89c"
_CELL, _GAP, _LEFT, _TOP = 46, 6, 22, 22
_SIDE = 4 * _CELL + 5 * _GAP
_ARROWS = "↑↓←→"


def tile_colours(rank: int) -> tuple[str, str]:
    """Background and text colour of a tile, as in the original game."""
    background = _TILES[rank] if rank < len(_TILES) else _BEYOND
    return background, _DARK if rank <= 2 else _LIGHT


def _tile(cell: int, rank: int) -> str:
    x: float = _LEFT + _GAP + cell % 4 * (_CELL + _GAP)
    y: float = _TOP + _GAP + cell // 4 * (_CELL + _GAP)
    background, ink = tile_colours(rank)
    square = f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" rx="4" fill="{background}"/>'
    if not rank:
        return square
    number = str(1 << rank)
    size = {1: 24, 2: 22, 3: 19, 4: 16, 5: 13.5}.get(len(number), 11.5)
    x, y = x + _CELL / 2, y + _CELL / 2 + size * 0.36
    return square + text_at(x, y, number, size, ink, BOLD + MIDDLE)


def _arrow(move: int) -> str:
    """A bold arrowhead in the margin, at the wall that the tiles are pushed to."""
    middle_x, middle_y = _LEFT + _SIDE / 2, _TOP + _SIDE / 2
    out = _SIDE / 2 + 11
    x, y = ((0, -out), (0, out), (-out, 0), (out, 0))[move]
    turn = (0, 180, 270, 90)[move]
    return (
        f'<path d="M0-8L26 7H-26Z" fill="{_CHOSEN}"'
        f' transform="translate({middle_x + x:g} {middle_y + y:g}) rotate({turn})"/>'
    )


def bar_lengths(evs: Sequence[float], legal: int, absolute: bool) -> list[float]:
    """Bar lengths 0..1 of the four EVs; 0 where illegal.

    absolute: EVs are chances of 0..1 and are drawn as they are. Otherwise the
    best legal move has a whole bar and the worst a tenth, since search values
    have no natural zero.
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


def _shown(ev: float) -> str:
    """An EV as text that fits beside its bar."""
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
    scale: float = 1.0,
) -> str:
    """A board with the chosen move as an arrow, and a bar of the EV for each direction.

    ranks: 16, row-major. move: 0..3 of up, down, left, right; also the order of
    evs and of the bits of `legal`. title and notes: text above and below the
    bars. absolute: as in `bar_lengths`. scale: as in `svg.card`. About 3.5 kB.
    """
    if len(ranks) != 16 or len(evs) != 4 or not 0 <= move <= 3:
        raise ValueError("a board has 16 ranks, 4 EVs and a move of 0..3")
    frame = (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" rx="6" fill="{_FRAME}"/>'
    )
    body = [frame, *(_tile(cell, rank) for cell, rank in enumerate(ranks)), _arrow(move)]
    left = 2 * _LEFT + _SIDE + 8
    body.append(text_at(left, _TOP + 16, title, 15, _DARK, BOLD))
    for k, length in enumerate(bar_lengths(evs, legal, absolute)):
        y = _TOP + 40 + k * 34
        ink = _CHOSEN if k == move else _DARK
        weight = BOLD if k == move else ""
        can = bool(legal >> k & 1)
        name = f"{_ARROWS[k]} {DIRECTIONS[k]}"
        body.append(text_at(left, y + 10, name, 13, ink if can or k == move else _FAINT, weight))
        value = _shown(evs[k]) if can else "illegal"
        body.append(text_at(left + 190, y + 10, value, 13, ink if can else _FAINT, END + weight))
        groove = f'<rect x="{left}" y="{y + 15}" height="7" rx="3.5" width='
        body.append(f'{groove}"190" fill="{_GROOVE}"/>')
        if length:
            fill = _CHOSEN if k == move else _OTHER
            body.append(f'{groove}"{max(7, 190 * length):.1f}" fill="{fill}"/>')
    for line, note in enumerate(notes):
        body.append(text_at(left, _TOP + 188 + 17 * line, note, 11.5, _DARK))
    return card(left + 190 + _LEFT, _SIDE + 2 * _TOP, title or "board", body, scale)


def plain_name(name: str) -> str:
    """A valuation type's name without what XML or Markdown might take for its own, 24 at most."""
    return re.sub(r"[^\w .+-]", "?", name, flags=re.ASCII)[:24]


def run_text(run: Run) -> str:
    """What metadata.db says of a run, in one line."""
    return (
        f"run {run.id}: seed {run.seed}, {run.steps:,} steps, score {run.max_score:,}, highest"
        f" tile {run.highest_tile}"
    )


def step_title(step: PackedStep) -> str:
    """The step's name in one line."""
    return f"run {step.run.id} · step {step.step_index:,}"


def step_notes(step: PackedStep) -> list[str]:
    """What there is to say of a step below its bars."""
    return [
        f"{plain_name(step.valuation)} · board_eval {step.board_eval:,}",
        f"run: {step.run.steps:,} steps, score {step.run.max_score:,}",
    ]


def step_svg(step: PackedStep, scale: float = 1.0) -> str:
    """`board_svg` of a packed step; tuple values are chances and are drawn as such."""
    return board_svg(
        step.ranks,
        step.move,
        step.evs,
        step.legal,
        title=step_title(step),
        notes=step_notes(step),
        absolute=step.valuation.startswith("tuple"),
        scale=scale,
    )


def step_text(step: PackedStep) -> RenderableType:
    """The same picture for a terminal, to be printed by a rich console."""
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
        can = bool(step.legal >> k & 1)
        style = "bold red" if k == step.move else ("" if can else "dim")
        bars.add_row(
            Text(f"{_ARROWS[k]} {DIRECTIONS[k]}", style),
            Text("█" * round(20 * length) + "·" * (20 - round(20 * length)), style),
            Text(_shown(step.evs[k]) if can else "illegal", style, justify="right"),
        )
    facts = [f"row {step.row:,}", *step_notes(step)]
    facts.append(f"seed {step.run.seed}, highest tile {step.run.highest_tile:,}")
    heading = Text(step_title(step), "bold")
    side = Group(heading, Text(), bars, Text(), *(Text(fact, "dim") for fact in facts))
    return Columns([board, side], padding=(0, 3))
