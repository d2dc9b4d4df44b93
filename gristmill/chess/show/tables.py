"""The tables of rows in the artifacts of a month, and the position that is drawn of a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from gristmill.browse.columns import Columns, of_arrays
from gristmill.browse.lines import Form
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture
from gristmill.chess.config import SPLITS
from gristmill.chess.format import folders
from gristmill.chess.format.folders import LAYOUT, OFFSETS, SAMPLE_PHASES, SPLICE_INDICES
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.chess.read.phases import phase_codes
from gristmill.chess.show.board import board_svg, board_text, caption
from gristmill.contract import BadInput
from gristmill.families import Misuse

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gristmill.browse.opening import Files

_SEARCHABLE: Final = (
    *(
        "game_id",
        "headers.White",
        "headers.Black",
        "headers.Opening",
        "headers.ECO",
        "headers.Event",
    ),
    *("White", "Black", "Opening", "ECO", "Event", "moves", "context", "next_move", "phase"),
    *("source_file", "reason", "error", "flag", "detail"),
)
_TAG: Final = re.compile(rb'^[ \t]*\[\s*(\w{1,64})\s*"((?:[^"\\]|\\.)*)"\s*\]\s*$', re.MULTILINE)
_MOST_PLIES: Final = 2_000


class Position(NamedTuple):
    """What is drawn of a row: its moves, whose play they are, and the phase after all of them."""

    title: str
    moves: Sequence[str]
    phase: str = ""


def tables(asset: str, folder: Path, files: Files) -> list[Stored]:
    """Returns the tables of an artifact of a month.

    asset: its key. folder: its path. files: what the record says of them.
    """
    if asset == "chess/elite_pgn":
        form = Form(_tags, begin=b"[Event ")
        return [
            _stored(path.name, lambda name=path.name: files.lines(name, form), ids=())
            for path in sorted(folder.glob("*.pgn"))
        ]
    if asset == "chess/valid_games":
        found = [_stored("games", lambda: files.jsonl(folders.VALID), _game)]
        for name, file in (("rejected", folders.INVALID), ("flagged", folders.FLAGGED)):
            if (folder / file).is_file():
                found.append(_stored(name, lambda file=file: files.csv(file), traced=False))
        return found
    if asset == "chess/splice_cache":
        return [
            _stored(
                split,
                lambda split=split: _cache(files, split),
                partial(_cached, folder, split),
                split,
                ids=(),
            )
            for split in SPLITS
        ]
    drawn = _game if asset == "chess/game_dataset" else _game_or_splice
    found = [
        _stored(split, lambda split=split: files.jsonl(f"{split}.jsonl"), drawn, split)
        for split in SPLITS
    ]
    if asset == "chess/subset":
        words = folders.SUBSET_VOCABULARY
        found.append(_stored("vocabulary", lambda: files.csv(words), traced=False, ids=()))
    return found


def _stored(
    name: str,
    opens: Any,
    drawn: Callable[[Record], Position] | None = None,
    split: str = "",
    traced: bool = True,
    ids: Sequence[str] = ("game_id",),
) -> Stored:
    options = {"split": split} if split else {}
    table = Stored(
        name,
        opens,
        _SEARCHABLE,
        sample=(lambda row: (str(row.number), options)) if traced else None,
        chosen=options,
        ids=ids,
    )
    if drawn is None:
        return table
    return replace(
        table,
        pictures=lambda row: _pictures(drawn(row)),
        drawn=lambda row, asked: _in_terminal(drawn(row), asked.get("ply")),
    )


def _tags(octets: bytes) -> Mapping[str, Any]:
    """The tags of a game in PGN, and its movetext."""
    tags = {
        name.decode(): value.replace(b'\\"', b'"').decode("utf-8", "replace")
        for name, value in _TAG.findall(octets)
    }
    moves = octets.rpartition(b"]")[2].decode("utf-8", "replace")
    return {**tags, "moves": " ".join(moves.split())}


def _pictures(shown: Position) -> Sequence[Picture]:
    """The position of a sample, or the middle and the last one of a game."""
    plies = len(shown.moves)
    places = (plies,) if shown.phase else dict.fromkeys((plies // 2, plies))
    return [
        Picture(f"ply {ply}", board_svg(shown.moves[:ply], shown.title, shown.phase))
        for ply in places
    ]


def _in_terminal(shown: Position, ply: int | None) -> Iterator[RenderableType]:
    """The position after so many plies, all by default. Raises Misuse where there is none."""
    plies = len(shown.moves)
    if ply is not None and not 0 <= ply <= plies:
        raise Misuse(f"--ply {ply}: the row has {plies} plies")
    moves = shown.moves[:ply]
    phase = shown.phase if len(moves) == plies else ""
    if moves and not phase:
        phase = PHASES[phase_codes([moves])[0][-1] & 3]
    yield board_text(moves)
    yield caption(moves, phase)


def _game(row: Record) -> Position:
    players = [row.values.get(f"headers.{side}") for side in ("White", "Black")]
    title = " – ".join(map(str, players)) if all(players) else f"game {row.values['game_id']}"[:15]
    return Position(f"{title} · {row.values.get('result', '')}", moves_of(row.values)[:_MOST_PLIES])


def _game_or_splice(row: Record) -> Position:
    values = row.values
    if "context" not in values:
        return _game(row)
    title = f"next move {values['next_move']}"
    return Position(title, values["context"][:_MOST_PLIES], values["phase"])


def _cache(files: Files, split: str) -> Columns:
    arrays, paths = {}, []
    for name, kind in LAYOUT.items():
        path = files.checked(f"{split}/{name}")
        size = path.stat().st_size
        if size % np.dtype(kind).itemsize:
            raise BadInput(
                path, f"has {size:,} bytes, no whole number of {kind} values: build it again"
            )
        arrays[name] = np.memmap(path, kind, "r") if size else np.zeros(0, kind)
        paths.append(path)
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise BadInput(
            paths[0].parent, f"its arrays have {sorted(lengths)} samples: build it again"
        )
    return of_arrays(paths[:1], [arrays])


def _cached(folder: Path, split: str, row: Record) -> Position:
    """The position of a sample, from the row of its game at the offset."""
    import orjson

    path = folders.split_file(folder.parent, split)
    with path.open("rb") as file:
        file.seek(row.values[OFFSETS])
        game = orjson.loads(file.readline())
    moves = moves_of(game)[: row.values[SPLICE_INDICES] + 1]
    phase = PHASES[row.values[SAMPLE_PHASES] & 3]
    return Position(f"game {game['game_id'][:10]} · {game['result']}", moves, phase)
