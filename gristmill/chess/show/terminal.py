"""A game, a position or a sample of a chess folder as text and a board, for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.format.kind_of import kind_of
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.chess.read.dataset import GameSpliceDataset
from gristmill.chess.read.phases import phase_codes
from gristmill.chess.read.trace import trace
from gristmill.chess.show.board import GLYPHS, squares_after
from gristmill.contract import BadInput
from gristmill.families import Request

if TYPE_CHECKING:
    from rich.console import RenderableType

_LIGHT, _DARK, _LAST = "#d9c7a7", "#a8825c", "#c9b037"
_INK = "#1c1612"
_MOVES_SHOWN = 24


def show(request: Request) -> Iterator[RenderableType]:
    """Yield the game or sample that a person asks to see, as text and a board.

    Raises BadInput where there is no such split, game, sample or position.
    """
    path, number, kind = request.path, request.number, kind_of(request.path)
    split = request.options.get("split") or "train"
    if kind in ("validated", "dataset"):
        ply = request.options.get("ply")
        yield _game(path, number, None if kind == "validated" else split, ply)
    elif split not in SPLITS:
        raise BadInput(path, f"split must be one of {SPLITS}, and samples count from 0")
    elif kind == "cache":
        yield _cached_sample(path, number, split)
    elif kind == "subset":
        yield _row(path, number, split)
    else:
        yield _legacy_sample(path, number, split)


def _game(path: Path, number: int, split: str | None, ply: int | None) -> RenderableType:
    traced = trace(path, number, split)
    moves = moves_of(traced.row)
    plies = len(moves) if ply is None else ply
    if not 0 <= plies <= len(moves):
        rule = f"game {number} has {len(moves)} plies; there is no position after {plies}"
        raise BadInput(path, rule)
    headers = traced.row.get("headers", {})
    facts = [f"{name}: {value}" for name, value in headers.items()]
    facts.append(f"{traced.source['name']} at byte {traced.pgn_offset:,}")
    facts += [f"flag: {flag}" for flag in traced.flags]
    title = f"game {number} · {traced.row['result']} · {len(moves)} plies · {traced.row['game_id']}"
    return _page(title, moves[:plies], moves[plies:], facts)


def _cached_sample(path: Path, number: int, split: str) -> RenderableType:
    manifest = json.loads((path / "manifest.json").read_bytes())
    config = CacheConfig(**manifest["config"])
    samples = GameSpliceDataset(
        path.parent, split, config=config, horizon=_MOVES_SHOWN, require_cache=True, verify=False
    )
    if number >= len(samples):
        rule = f"{split} has {len(samples)} samples; there is no sample {number}"
        raise BadInput(path, rule)
    sample = samples[number]
    title = f"{split} sample {number} · next move {sample.next_move} · game {sample.game_id}"
    return _page(title, sample.context, sample.target, [f"cached phase {PHASES[sample.phase]}"])


def _line(path: Path, number: int, split: str) -> dict[str, Any]:
    with (path / f"{split}.jsonl").open("rb") as lines:
        line = next(islice(lines, number, None), None)
    if line is None:
        raise BadInput(path / f"{split}.jsonl", f"there is no sample {number}")
    row: dict[str, Any] = json.loads(line)
    return row


def _row(path: Path, number: int, split: str) -> RenderableType:
    """A row of a subset: a game, or a sample of the legacy form."""
    row = _line(path, number, split)
    if "context" in row:
        return _legacy_sample(path, number, split)
    title = f"{split} game {number} · {row['result']} · {row['plies']} plies · {row['game_id']}"
    facts = [f"{name}: {value}" for name, value in row.get("headers", {}).items()]
    return _page(title, moves_of(row), [], facts)


def _legacy_sample(path: Path, number: int, split: str) -> RenderableType:
    row = _line(path, number, split)
    title = f"{split} sample {number} · next move {row['next_move']} · game {row['game_id']}"
    facts = [f"{name}: {row[name]}" for name in ("winner_side", "splice_index", "plies_remaining")]
    return _page(title, row["context"], row["target"], facts)


def _page(
    title: str, before: Sequence[str], after: Sequence[str], facts: Sequence[str]
) -> RenderableType:
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    phase = PHASES[phase_codes([before])[0][-1] & 3] if before else "start"
    turn = "black" if len(before) % 2 else "white"
    lines = [
        Text(title, "bold"),
        Text(f"ply {len(before)} · {turn} to move · {phase}"),
        Text(),
        Text("… " * (len(before) > _MOVES_SHOWN) + " ".join(before[-_MOVES_SHOWN:])),
    ]
    if after:
        lines.append(Text(f"then {' '.join(after[:_MOVES_SHOWN])}", "dim"))
    lines += [Text(), *(Text(fact, "dim") for fact in facts)]
    return Columns([_board(before), Group(*lines)], padding=(0, 3))


def _board(moves: Sequence[str]) -> RenderableType:
    """A coloured board with the squares of the last move marked."""
    from rich.style import Style
    from rich.text import Text

    squares, text = squares_after(moves), Text(no_wrap=True)
    last = {moves[-1][:2], moves[-1][2:4]} if moves else set()
    for rank in range(7, -1, -1):
        text.append(f"{rank + 1} ")
        for file in range(8):
            piece = squares[8 * rank + file]
            ground = _DARK if (rank + file) % 2 == 0 else _LIGHT
            if f"{'abcdefgh'[file]}{rank + 1}" in last:
                ground = _LAST
            style = Style(color=_INK, bgcolor=ground)
            text.append(f" {GLYPHS.get(piece, ' ')} ", style)
        text.append("\n")
    text.append("   a  b  c  d  e  f  g  h ")
    return text
