"""Chess for people and other programs: boards, tables of rows, their columns, facts, exports.

The SVG of a board is small enough for Dagster to show it inline: see `gristmill.markdown.INLINE`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from gristmill.browse.columns import Columns, of_arrays
from gristmill.browse.lines import Form
from gristmill.browse.source import MOST_ROWS, Record, Stored
from gristmill.browse.table import Picture, Query
from gristmill.chess.config import SPLITS
from gristmill.chess.format import folders
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.chess.raw.pgn_text import is_month
from gristmill.chess.read.row_batches import phase_codes
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Column, Misuse, columns_of
from gristmill.provenance import RECORD, read_record
from gristmill.provenance.trace_inputs import source
from gristmill.reading.reader import array_fact, file_facts
from gristmill.svg import OVERVIEW, SOFT, small_card, small_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from gristmill.browse.opening import Files
    from gristmill.exports.table import Split

_GAME_ID = Column("game_id", "string", "40 hex digits")
_SOURCE = Column("source_file", "string", "the name of the PGN; left out where it is empty")
_RESULT = Column("result", "string", "the tag Result after filling; * where there is none")
_WINNER = Column("winner_side", "string", "W, B or D; ? for another result")
_PLIES = Column("plies", "integer", "number of moves")
_MOVES = Column("moves", "array of string", "moves in UCI, as e2e4")

_COLUMNS = {
    "chess/valid_games": (
        _GAME_ID,
        _SOURCE,
        Column("headers", "object", "tags of the game"),
        _RESULT,
        _WINNER,
        _PLIES,
        _MOVES,
        Column("moves_uci", "array of string", "the same moves again"),
    ),
    "chess/game_dataset": (
        Column("schema", "string", "game_dataset_runtime_splice_v1"),
        _GAME_ID,
        _WINNER,
        _RESULT,
        _PLIES,
        _MOVES,
        _SOURCE,
        Column("headers", "object", "tags of the game, with keep_headers alone"),
    ),
    "chess/subset": (
        Column("id", "integer", "vocabulary.csv: id of a move; 0 is <PAD>, 1 is <UNK>"),
        Column("move", "string", "vocabulary.csv: a move of the train rows, in UCI; sorted"),
        Column("count", "integer", "vocabulary.csv: how often the train rows have it"),
    ),
    "chess/splice_cache": (
        Column(folders.PATH_IDS, "uint32", "index into the paths file, always 0"),
        Column(folders.OFFSETS, "uint64", "byte offset of the game's row in the JSONL file"),
        Column(folders.SPLICE_INDICES, "uint32", "index of the last move of the context"),
        Column(folders.SAMPLE_PHASES, "uint8", "phase of the position after the context"),
    ),
    "chess/splice_dataset": (
        _GAME_ID,
        _WINNER,
        Column("splice_index", "integer", "index of the last move of the context"),
        Column("ply", "integer", "plies of the context"),
        Column("plies_remaining", "integer", "plies from the label to the end of the game"),
        Column("plies_remaining_bucket", "string", "<=10, 11-20 or >20"),
        Column("relative_progress_bucket", "string", "early, mid or late"),
        Column("phase", "string", "opening, middlegame, endgame or unknown"),
        Column("phase_reason", "string", "the rule that decided the phase"),
        Column("phase_rule_version", "string", "material_castling_v1"),
        Column("context", "array of string", "moves up to the splice, in UCI"),
        Column("target", "array of string", "the next moves, 4 by default"),
        Column("next_move", "string", "the first move after it: the label"),
        Column("plies_total", "integer", "number of moves of the game"),
    ),
}


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables."""
    return _COLUMNS.get(asset, ())


_LIGHT, _DARK, _LAST, _INK = "#d9c7a7", "#a8825c", "#c9b037", "#111111"
_CELL, _TOP = 22, 46
# Outlines for white, so that colours are not needed to tell the sides.
_GLYPHS = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))


def squares_after(moves: Sequence[str]) -> list[str]:
    """The pieces on the 64 squares after legal UCI moves from the start position.

    A text that is no move of a piece, such as `0000`, is passed over. Returns one letter a square
    from a1, b1 to h8: upper case for White, empty for no piece.
    """
    back = "rnbqkbnr"
    board = [*back.upper(), *"P" * 8, *[""] * 32, *"p" * 8, *back]
    for move in moves:
        if not (places := _places(move)):
            continue
        origin, target = places
        piece = board[origin]
        if piece.lower() == "p" and move[0] != move[2] and not board[target]:
            board[target + (-8 if piece == "P" else 8)] = ""  # en passant
        if piece.lower() == "k" and abs(target - origin) == 2:
            rook = (target + 1, target - 1) if target > origin else (target - 2, target + 1)
            board[rook[0]], board[rook[1]] = "", board[rook[0]]
        promoted = move[4:5]
        if promoted:
            piece = promoted.upper() if piece.isupper() else promoted
        board[origin], board[target] = "", piece
    return board


def _places(move: str) -> list[int]:
    """The two squares of a move; none for a text that is no move of a piece."""
    if len(move) < 4 or move[0] not in "abcdefgh" or move[2] not in "abcdefgh":
        return []
    return [ord(move[at]) - 97 + 8 * (ord(move[at + 1]) - 49) for at in (0, 2)]


def caption(moves: Sequence[str], phase: str = "") -> str:
    """A line on the position after some moves: the ply, the phase if it is given, whose turn."""
    turn = "black" if len(moves) % 2 else "white"
    return f"ply {len(moves)} · {phase} · {turn}" if phase else f"ply {len(moves)} · {turn} to move"


def board_svg(moves: Sequence[str], title: str, phase: str = "") -> str:
    """Draw the position after some moves."""
    held = [(square, piece) for square, piece in enumerate(squares_after(moves)) if piece]
    files = " ".join(str(square % 8) for square, _ in held)
    rows = " ".join(str(7 - square // 8) for square, _ in held)
    glyphs = "".join(_GLYPHS[piece] for _, piece in held)
    dark = "".join(f"M{1 - row % 2} {row}.5h{7 + row % 2}" for row in range(8))
    places = _places(moves[-1]) if moves else []
    last = "".join(f"M{square % 8} {7 - square // 8}.5h1" for square in places)
    body = [
        small_text(10, 20, title, " font-weight='700'"),
        small_text(10, 38, caption(moves, phase), f" fill='{SOFT}'"),
        f"<g transform='translate({(OVERVIEW - 8 * _CELL) // 2} {_TOP}) scale({_CELL})'>",
        f"<path d='M0 4h8' stroke='{_LIGHT}' stroke-width='8'/>",
        f"<path d='{dark}' stroke='{_DARK}' stroke-dasharray='1'/>",
        f"<path d='{last}' stroke='{_LAST}'/>" * bool(last),
        f"<text x='{files}' y='{rows}' transform='translate(.5 .82)' font-size='.86'",
        f" text-anchor='middle' fill='{_INK}'>{glyphs}</text></g>",
    ]
    return small_card(_TOP + 8 * _CELL + 10, body)


def board_text(moves: Sequence[str]) -> Text:
    """The position after some moves, for a terminal."""
    from rich.style import Style
    from rich.text import Text

    squares, text = squares_after(moves), Text(no_wrap=True)
    last = _places(moves[-1]) if moves else []
    for rank in range(7, -1, -1):
        text.append(f"{rank + 1} ")
        for square in range(8 * rank, 8 * rank + 8):
            ground = _LIGHT if (rank + square) % 2 else _DARK
            style = Style(color=_INK, bgcolor=_LAST if square in last else ground)
            text.append(f" {_GLYPHS.get(squares[square], ' ')} ", style)
        text.append("\n")
    return text.append("   a  b  c  d  e  f  g  h ")


_TAGS: Final = ("White", "Black", "Opening", "ECO", "Event", "Date", "UTCDate")
_SEARCHABLE: Final = (
    *("game_id", *_TAGS, *(f"headers.{name}" for name in _TAGS)),
    *("moves", "context", "next_move", "phase", "source_file", "reason", "error", "flag", "detail"),
)
_TAG: Final = re.compile(rb'^[ \t]*\[\s*(\w{1,64})\s*"((?:[^"\\]|\\.)*)"\s*\]\s*$', re.MULTILINE)
_MOST_PLIES: Final = 2_000


class Position(NamedTuple):
    """What is drawn of a row: its moves, whose play they are, and the phase after all of them."""

    title: str
    moves: Sequence[str]
    phase: str = ""


def tables(asset: str, folder: Path, files: Files) -> list[Stored]:
    """Returns the tables of an artifact of a month."""
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
        opens = {split: partial(_cache, files, split) for split in SPLITS}
        drawn = {split: partial(_cached, folder, split) for split in SPLITS}
        return [_stored(each, opens[each], drawn[each], each, ids=()) for each in SPLITS]
    found = [
        replace(
            _stored(split, lambda split=split: files.jsonl(f"{split}.jsonl"), _game, split),
            also=partial(_of_games, folder),
        )
        for split in SPLITS
    ]
    if asset == "chess/subset":
        words = folders.SUBSET_VOCABULARY
        found.append(_stored("vocabulary", lambda: files.csv(words), traced=False, ids=()))
    return found


def _of_games(folder: Path, text: str) -> Mapping[str, Sequence[str]]:
    """The ids of games, of which a dataset was made, whose tags have a text: the first ones."""
    from gristmill.browse.opening import open_table

    try:
        made = source(folder).made_from("chess/valid_games")
        found = open_table(made.folder, name="games").find(Query(text), most=MOST_ROWS, seconds=1)
    except GristmillError:
        return {}  # a subset, or games that are gone: its own columns are searched
    return {"game_id": [str(row.cells["game_id"]) for row in found.rows if not row.error]}


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
    """The last position of a game, or that of a splice."""
    values = row.values
    if "context" in values:
        title = f"next move {values['next_move']}"
        return Position(title, values["context"][:_MOST_PLIES], values["phase"])
    players = [values.get(f"headers.{side}") for side in ("White", "Black")]
    title = " – ".join(map(str, players)) if all(players) else f"game {values['game_id']}"[:15]
    return Position(f"{title} · {values.get('result', '')}", moves_of(values)[:_MOST_PLIES])


def _cache(files: Files, split: str) -> Columns:
    arrays, paths = {}, []
    for name, kind in folders.LAYOUT.items():
        path = files.checked(f"{split}/{name}")
        size = path.stat().st_size
        if size % np.dtype(kind).itemsize:
            rule = f"has {size:,} bytes, no whole number of {kind} values: build it again"
            raise BadInput(path, rule)
        arrays[name] = np.memmap(path, kind, "r") if size else np.zeros(0, kind)
        paths.append(path)
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        rule = f"its arrays have {sorted(lengths)} samples: build it again"
        raise BadInput(paths[0].parent, rule)
    return of_arrays(paths[:1], [arrays])


def _cached(folder: Path, split: str, row: Record) -> Position:
    """The position of a sample, from the row of its game at the offset."""
    import orjson

    path = folders.split_file(folder.parent, split)
    with path.open("rb") as file:
        file.seek(row.values[folders.OFFSETS])
        game = orjson.loads(file.readline())
    moves = moves_of(game)[: row.values[folders.SPLICE_INDICES] + 1]
    phase = PHASES[row.values[folders.SAMPLE_PHASES] & 3]
    return Position(f"game {game['game_id'][:10]} · {game['result']}", moves, phase)


_ROWS = (
    *(folders.VALID, folders.INVALID, folders.FLAGGED),
    *(*(f"{split}.jsonl" for split in SPLITS), folders.DROPPED),
)


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the files with their rows, the arrays of a cache, and the numbers of its reports."""
    yield from file_facts(folder, sorted(path.name for path in folder.glob("*.pgn")))
    yield from file_facts(folder, _ROWS)
    for split in SPLITS if asset == "chess/splice_cache" else ():
        for name, dtype in folders.LAYOUT.items():
            yield array_fact(f"{split}/{name}", np.fromfile(folder / split / name, dtype))
    for name in (folders.SUMMARY, folders.STATS, folders.CACHE_MANIFEST, folders.SUBSET):
        if (folder / name).is_file():
            yield from _numbers(name, json.loads((folder / name).read_bytes()))


def _numbers(name: str, report: object) -> Iterator[str]:
    """The numbers of a report and of the objects in it, those of each object in one line."""
    if not isinstance(report, dict):
        return
    own = [f"{key} {value:,}" for key, value in report.items() if type(value) in (int, float)]
    if own:
        yield f"{name}: {', '.join(own)}"
    for key, value in report.items():
        if key != "files":
            yield from _numbers(f"{name} {key}", value)


_SUBSET: Final = "chess/subset"
_LICENCE: Final = "cc0-1.0"
"""Of the games of Lichess, which the months are made of; that of a collection is not known."""


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the games of a month, or the splits of a dataset or subset of games or splices."""
    from gristmill.exports.table import SPLITS as WRITTEN  # loads Arrow
    from gristmill.exports.table import lines

    if asset not in ("chess/valid_games", "chess/game_dataset", "chess/splice_dataset", _SUBSET):
        return
    files = {WRITTEN.get(split, split): f"{split}.jsonl" for split in SPLITS}
    if asset == "chess/valid_games":
        files = {"train": folders.VALID}
    record = read_record(folder / RECORD)
    rows_of = record.inputs[0].asset if asset == _SUBSET else asset
    month = str(record.partition)
    licence = _LICENCE if is_month(month) else ""
    months = record.artifact.replace(month, "months").replace("/", ".")
    whole = f"all.{months}" if licence else ""
    for name, file in files.items():
        of_rows = columns_of(rows_of or asset)
        yield lines(folder / file, of_rows, name=name, file=file, licence=licence, whole=whole)
