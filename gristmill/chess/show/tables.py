"""The tables of rows in the artifacts of a month, for the sample browser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.browse.columns import Columns, of_arrays
from gristmill.browse.lines import Form
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture
from gristmill.chess.config import SPLITS
from gristmill.chess.format import names
from gristmill.chess.format.names import LAYOUT, OFFSETS, SPLICE_INDICES
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.chess.show.board import board_svg
from gristmill.contract import BadInput

if TYPE_CHECKING:
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
_TAG: Final = re.compile(rb'^\[(\w{1,64})\s+"((?:[^"\\]|\\.)*)"\]\s*$', re.MULTILINE)
_MOST_PLIES: Final = 2_000


def tables(asset: str, folder: Path, files: Files) -> list[Stored]:
    """Returns the tables of an artifact of a month.

    asset: its key. folder: its path. files: what the record says of them.
    """
    if asset == "chess/elite_pgn":
        form = Form(_tags, begin=b"[Event ")
        return [
            _stored(path.name, lambda name=path.name: files.lines(name, form))
            for path in sorted(folder.glob("*.pgn"))
        ]
    if asset == "chess/valid_games":
        found = [_stored("games", lambda: files.jsonl(names.VALID), _game)]
        for name, file in (("rejected", names.INVALID), ("flagged", names.FLAGGED)):
            if (folder / file).is_file():
                found.append(_stored(name, lambda file=file: files.csv(file), traced=False))
        return found
    if asset == "chess/splice_cache":
        return [
            _stored(
                split,
                lambda split=split: _cache(files, split),
                lambda row, split=split: _cached(folder, split, row),
                split,
            )
            for split in SPLITS
        ]
    drawn = {"chess/game_dataset": _game, "chess/subset": _game_or_splice}.get(asset, _splice)
    found = [
        _stored(split, lambda split=split: files.jsonl(f"{split}.jsonl"), drawn, split)
        for split in SPLITS
    ]
    if asset == "chess/subset":
        words = names.SUBSET_VOCABULARY
        found.append(_stored("vocabulary", lambda: files.csv(words), traced=False))
    return found


def _stored(
    name: str, opens: Any, pictures: Any = lambda _: (), split: str = "", traced: bool = True
) -> Stored:
    options = {"split": split} if split else {}
    return Stored(
        name,
        opens,
        _SEARCHABLE,
        sample=(lambda row: (str(row.number), options)) if traced else None,
        pictures=pictures,
    )


def _tags(octets: bytes) -> Mapping[str, Any]:
    """The tags of a game in PGN, and its movetext."""
    tags = {
        name.decode(): value.replace(b'\\"', b'"').decode("utf-8", "replace")
        for name, value in _TAG.findall(octets)
    }
    moves = octets.rpartition(b"]")[2].decode("utf-8", "replace")
    return {**tags, "moves": " ".join(moves.split())}


def _game(row: Record) -> Sequence[Picture]:
    """The middle and the last position of a game."""
    moves = moves_of(row.values)[:_MOST_PLIES]
    players = [row.values.get(f"headers.{side}") for side in ("White", "Black")]
    title = " – ".join(map(str, players)) if all(players) else f"game {row.values['game_id']}"[:15]
    title += f" · {row.values.get('result', '')}"
    return [
        _position(moves[:plies], title) for plies in dict.fromkeys((len(moves) // 2, len(moves)))
    ]


def _position(moves: Sequence[str], title: str, phase: str = "") -> Picture:
    return Picture(f"ply {len(moves)}", board_svg(moves, title=title, phase=phase))


def _splice(row: Record) -> Sequence[Picture]:
    """The position of a sample."""
    moves, title = row.values["context"][:_MOST_PLIES], f"next move {row.values['next_move']}"
    return [_position(moves, title, row.values["phase"])]


def _game_or_splice(row: Record) -> Sequence[Picture]:
    return _splice(row) if "context" in row.values else _game(row)


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


def _cached(folder: Path, split: str, row: Record) -> Sequence[Picture]:
    """The position of a sample, from the row of its game at the offset."""
    import orjson

    path = names.split_file(folder.parent, split)
    with path.open("rb") as file:
        file.seek(row.values[OFFSETS])
        game = orjson.loads(file.readline())
    moves = moves_of(game)[: row.values[SPLICE_INDICES] + 1]
    phase = PHASES[row.values["sample_phase_ids.u8.bin"] & 3]
    return [_position(moves, f"game {game['game_id'][:10]} · {game['result']}", phase)]
