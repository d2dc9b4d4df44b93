"""Rows of valid games or of a dataset, in batches of whole lines; phases and vocabulary of moves.

The phase codes come from the sidecar, which must then agree with every row; without one the games
are replayed, by a compiled function: python-chess decides only where a king moves onto its own
rook. Source: docs/formats/chess.md#accepted-rows, docs/formats/chess.md#phases and
docs/formats/chess.md#vocabulary
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import CacheConfig
from gristmill.chess.format import folders
from gristmill.chess.format.folders import GAME, NO_SOURCE, VOCABULARY, Sidecar, split_file
from gristmill.chess.format.rows import VOCAB_KIND, moves_of
from gristmill.chess.raw import python_chess
from gristmill.contract import BadInput

_MOVE = re.compile(r"([a-h])([1-8])([a-h])([1-8])([nbrq]?)")
# The packed form of a text that is no move.
NO_MOVE = 0xFFFF


def pack_move(text: str) -> int:
    """A UCI move as from | to << 6 | promotion << 12; NO_MOVE for any other text.

    text: as `e2e4` or `a7a8q`. A square is 0 (a1) to 63 (h8); a promotion is 0 for
        none, 1 knight, 2 bishop, 3 rook, 4 queen.
    """
    match = _MOVE.fullmatch(text)
    if not match or match[1] + match[2] == match[3] + match[4]:
        return NO_MOVE
    origin = ord(match[1]) - 97 + (ord(match[2]) - 49) * 8
    target = ord(match[3]) - 97 + (ord(match[4]) - 49) * 8
    return origin | target << 6 | ("nbrq".index(match[5]) + 1 if match[5] else 0) << 12


def unpack_move(move: int) -> str:
    """A packed move as UCI text; `0000` for NO_MOVE."""
    if move == NO_MOVE:
        return "0000"
    origin, target, promotion = move & 63, (move >> 6) & 63, move >> 12
    files = "abcdefgh"
    text = f"{files[origin & 7]}{(origin >> 3) + 1}{files[target & 7]}{(target >> 3) + 1}"
    return text + "nbrq"[promotion - 1] if promotion else text


def replay_phases(moves: NDArray[np.uint16], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Phase codes uint8 [plies] of games, by replay from the start position.

    moves: packed moves uint16 [plies], game after game. lengths: plies of each game.
    A code is 0 from the first move of a game on that is not legal.
    """
    from gristmill.chess.kernels.board import new_board
    from gristmill.chess.kernels.replay import replay

    codes = np.zeros(len(moves), np.uint8)
    board, ply, game = new_board(), 0, 0
    lengths = np.ascontiguousarray(lengths)
    while (undecided := replay(moves, ply, lengths[game:], codes, board)) >= 0:
        ply += int(lengths[game : game + undecided].sum())
        game += undecided
        n = int(lengths[game])
        texts = [unpack_move(move) for move in moves[ply : ply + n].tolist()]
        codes[ply : ply + n] = np.frombuffer(python_chess.phase_codes(texts), np.uint8)
        ply, game = ply + n, game + 1
    return codes


def phase_codes(games: Sequence[Sequence[str]]) -> list[bytes]:
    """The phase codes of each game of UCI moves, one byte a ply. Raises MissingPythonChess."""
    lengths = np.array([len(game) for game in games], dtype=np.int64)
    moves = np.array([pack_move(move) for game in games for move in game], dtype=np.uint16)
    codes = replay_phases(moves, lengths)
    ends = np.cumsum(lengths).tolist()
    return [codes[e - n : e].tobytes() for e, n in zip(ends, lengths.tolist(), strict=True)]


_PLIES_LIMIT = 10**9  # the compiled reader reads nine digits


_WINDOW = 1 << 16
_RECORDS_PER_READ = 1 << 14
_PADDING = 64  # zero bytes that the compiled reader needs after the text


@dataclass(frozen=True)
class RowRange:
    """Whole lines of a JSONL file; first, ply: rows and plies before them, -1 without a sidecar."""

    path: Path
    start: int
    stop: int
    sidecar: Sidecar | None = None
    first: int = -1
    ply: int = -1


@dataclass
class RowBatch:
    """The rows of a byte range.

    buf: their bytes, then zeros; uint8.
    columns: byte places and numbers of each row, int64 [rows, `rowshape.COLUMNS`].
    moves, codes: packed moves and phase codes, row after row; [plies].
    noted: game record of each row in the sidecar, `folders.GAME` [rows]; None without one.
    """

    byte_range: RowRange
    buf: NDArray[np.uint8]
    columns: NDArray[np.int64]
    moves: NDArray[np.uint16]
    uci: bytes
    codes: NDArray[np.uint8]
    noted: NDArray[np.void] | None

    def ids(self) -> list[str]:
        """The ids of the games as text."""
        from gristmill.chess.kernels import rowshape

        # The kernel takes strings of printable ASCII alone.
        text = self.buf.tobytes().decode("latin-1")
        spans = self.columns[:, [rowshape.ID0, rowshape.ID1]].tolist()
        ids = [text[start:end] for start, end in spans]
        return [str(json.loads(f'"{each}"')) if "\\" in each else each for each in ids]

    @cached_property
    def records(self) -> NDArray[np.void]:
        """Game record of each row, `folders.GAME` [rows]; without a sidecar they name no PGN."""
        from gristmill.chess.kernels import rowshape

        if self.noted is not None:
            return self.noted
        records = np.zeros(len(self.columns), GAME)
        records["row"] = self.columns[:, rowshape.LINE0] + self.byte_range.start
        records["file"] = NO_SOURCE
        records["plies"] = self.columns[:, rowshape.N]
        records["move_key"] = _keys_of(_texts(self.uci, self.columns))
        return records

    def opening_keys(self, plies: int) -> NDArray[np.uint64]:
        """The move key of the first moves of each row, uint64 [rows]."""
        texts = [
            b" ".join(text.split(b" ", plies)[:plies]) for text in _texts(self.uci, self.columns)
        ]
        return _keys_of(texts)


def _texts(uci: bytes, columns: NDArray[np.int64]) -> list[bytes]:
    """The moves of each row, joined by spaces."""
    from gristmill.chess.kernels import rowshape

    spans = columns[:, [rowshape.UCI0, rowshape.UCI1]].tolist()
    return [uci[start:end] for start, end in spans]


def _keys_of(texts: list[bytes]) -> NDArray[np.uint64]:
    sha256 = hashlib.sha256
    digests = b"".join([sha256(text).digest()[:8] for text in texts])
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def _cuts(path: Path, range_bytes: int) -> list[int]:
    """Byte offsets of line starts, about `range_bytes` apart, with 0 and the size of the file."""
    size = path.stat().st_size
    cuts = [0]
    with path.open("rb", buffering=0) as file:
        while cuts[-1] < size:
            at = cuts[-1] + range_bytes
            while at < size:
                window = os.pread(file.fileno(), _WINDOW, at)
                newline = window.find(b"\n")
                if newline >= 0:
                    at += newline + 1
                    break
                at += len(window)
            cuts.append(min(at, size))
    return cuts


def _counts_before(sidecar: Sidecar, cuts: list[int]) -> list[tuple[int, int]]:
    """For each byte offset: the numbers of rows and of plies before it."""
    counts = [(0, 0)]
    row, ply = 0, 0
    for _, _, records in sidecar.batches(_RECORDS_PER_READ):
        offsets = records["row"]
        ends = np.cumsum(records["plies"], dtype=np.int64)
        while len(counts) < len(cuts) and (
            n := int(np.searchsorted(offsets, cuts[len(counts)]))
        ) < len(records):
            counts.append((row + n, ply + int(ends[n - 1] if n else 0)))
        row, ply = row + len(records), ply + int(ends[-1])
    return counts + [(row, ply)] * (len(cuts) - len(counts))


def row_ranges(path: Path, range_bytes: int, sidecar: Sidecar | None) -> Iterator[RowRange]:
    """Cut a JSONL file into byte ranges of whole lines, in file order, of about so many bytes.

    Raises BadInput where the sidecar's files do not fit together.
    """
    cuts = _cuts(path, range_bytes)
    counts = _counts_before(sidecar, cuts) if sidecar else [(-1, -1)] * len(cuts)
    for i in range(len(cuts) - 1):
        first, ply = counts[i]
        yield RowRange(path, cuts[i], cuts[i + 1], sidecar, first, ply)


def _row_number(byte_range: RowRange, number: int) -> int:
    """The row's number in its file from its number in the range, both from 1, no blank lines."""
    at = 0
    with byte_range.path.open("rb") as file:
        while at < byte_range.start:
            line = file.readline()
            at += len(line)
            number += bool(line.strip())
    return number


def _parse(data: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint16], bytes]:
    from gristmill.chess.kernels import rowshape, rowtext

    size = len(data)
    buf = np.zeros(size + _PADDING, np.uint8)
    buf[:size] = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(buf[:size] == ord("\n"))
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, size)
    records = np.zeros((len(ends), rowshape.COLUMNS), np.int64)
    moves = np.empty(size // 3 + 16, np.uint16)
    uci = np.empty(size + 16, np.uint8)
    n = rowtext.find_rows(buf, ends, records, moves, uci)
    columns = records[:n]
    plies = int(columns[:, rowshape.N].sum())
    uci_bytes = int(columns[-1, rowshape.UCI1]) if n else 0
    return buf, columns, moves[:plies], uci[:uci_bytes].tobytes()


def rows_in(
    byte_range: RowRange,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint16], bytes]:
    """The rows of a byte range: `buf`, `columns`, `moves` and `uci` of a RowBatch.

    Raises BadInput with the number of a row that is no JSON object of simple moves.
    """
    from gristmill.chess.kernels import rowshape

    with byte_range.path.open("rb", buffering=0) as file:
        data = os.pread(file.fileno(), byte_range.stop - byte_range.start, byte_range.start)
    buf, columns, moves, uci = _parse(data)
    if columns[:, rowshape.UNUSUAL].any():
        lines = []
        of = columns[:, [rowshape.LINE0, rowshape.LINE1, rowshape.UNUSUAL]].tolist()
        for number, (start, end, unusual) in enumerate(of, 1):
            line = data[start:end]
            try:
                lines.append(canonical_row(line) if unusual else line + b"\n")
            except ValueError as error:
                rule = f"the row is not a JSON object ({error}); correct or remove it"
                place = _row_number(byte_range, number)
                raise BadInput(byte_range.path, rule, place) from error
        buf, columns, moves, uci = _parse(b"".join(lines))
        if columns[:, rowshape.UNUSUAL].any():
            number = int(np.flatnonzero(columns[:, rowshape.UNUSUAL])[0]) + 1
            rule = "the row has moves that are not simple texts; correct or remove it"
            raise BadInput(byte_range.path, rule, _row_number(byte_range, number))
    return buf, columns, moves, uci


def read_batch(byte_range: RowRange, *, by_keys: bool = False) -> RowBatch:
    """Read the rows of a byte range, with phase codes, and with game records of the sidecar.

    by_keys: compare move keys with the sidecar, which hashes all moves, where packed moves
        could be compared (default False).

    Raises BadInput with the row number where a row cannot be read, and BadInput
    where the sidecar does not agree with the rows.
    """
    from gristmill.chess.kernels import rowshape

    batch = RowBatch(byte_range, *rows_in(byte_range), codes=np.empty(0, np.uint8), noted=None)
    plies = batch.columns[:, rowshape.N]
    if byte_range.sidecar is None:
        return replace(batch, codes=replay_phases(batch.moves, plies))
    records = _from_sidecar(batch, byte_range.sidecar, by_keys)
    codes = byte_range.sidecar.phases(byte_range.ply, int(plies.sum()))
    return replace(batch, codes=codes, noted=records)


def _from_sidecar(batch: RowBatch, sidecar: Sidecar, by_keys: bool) -> NDArray[np.void]:
    """The records of the rows. Raises BadInput where they are those of other rows."""
    from gristmill.chess.kernels import rowshape

    byte_range, columns, moves = batch.byte_range, batch.columns, batch.moves
    records = sidecar.records(byte_range.first, len(columns))
    offsets = columns[:, rowshape.LINE0] + byte_range.start
    agrees = (
        len(records) == len(columns)
        and (records["row"].astype(np.int64) == offsets).all()
        and (records["plies"] == columns[:, rowshape.N]).all()
    )
    # A text that is no move has no number of its own among packed moves.
    if agrees and not by_keys and sidecar.has_moves and not (moves == NO_MOVE).any():
        agrees = np.array_equal(sidecar.moves(byte_range.ply, len(moves)), moves)
    elif agrees:
        agrees = (records["move_key"] == _keys_of(_texts(batch.uci, columns))).all()
    if not agrees:
        rule = f"the rows from byte {byte_range.start} on are not those of the sidecar; validate "
        rule += "again, or remove the sidecar folder to have the games replayed"
        raise BadInput(byte_range.path, rule)
    return records


def canonical_row(line: bytes) -> bytes:
    """A row as one line of JSON in the compiled reader's form, with a line feed."""
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    moves = moves_of(row)
    winner, result, plies = row.get("winner_side", "?"), row.get("result"), row.get("plies")
    headers = row.get("headers")
    texts_only = isinstance(headers, dict) and all(isinstance(v, str) for v in headers.values())
    canonical: dict[str, Any] = {
        "game_id": str(row.get("game_id") or ""),
        "source_file": str(row.get("source_file") or ""),
        "headers": headers if texts_only else {},
        "result": result if isinstance(result, str) else "*",
        "winner_side": winner if winner in ("W", "B", "D") else "?",
        "plies": plies if type(plies) is int and 0 <= plies < _PLIES_LIMIT else len(moves),
        "moves": moves,
    }
    return json.dumps(canonical).encode() + b"\n"


_RANGE_BYTES = 4 << 20
_MOVES_A_READ = 1 << 22


def moves_in(path: Path) -> list[str]:
    """The distinct moves of a JSONL file of games, sorted."""
    from gristmill.chess.kernels import rowshape

    seen = np.zeros(1 << 16, dtype=np.bool_)
    other: set[str] = set()
    for byte_range in row_ranges(path, _RANGE_BYTES, None):
        _, columns, moves, uci = rows_in(byte_range)
        seen[moves] = True
        if seen[NO_MOVE]:
            seen[NO_MOVE] = False
            for start, end in columns[:, [rowshape.UCI0, rowshape.UCI1]].tolist():
                other.update(uci[start:end].decode().split())
    return sorted({unpack_move(move) for move in np.flatnonzero(seen).tolist()} | other)


def packed_words(path: Path) -> set[str] | None:
    """The distinct moves of a file of packed moves; None where one is no move of the rules."""
    seen = np.zeros(1 << 16, np.bool_)
    with path.open("rb") as file:
        while len(moves := np.fromfile(file, folders.MOVE, _MOVES_A_READ)):
            seen[moves] = True
    return None if seen[NO_MOVE] else {unpack_move(move) for move in np.flatnonzero(seen).tolist()}


def words_of_train(dataset: Path) -> list[str]:
    """The words of a vocabulary, in order: two marks, then the moves of the train games."""
    packed = folders.moves_file(dataset, "train")
    moves = packed_words(packed) if packed.exists() else None
    if moves is None:
        return ["<PAD>", "<UNK>", *moves_in(split_file(dataset, "train"))]
    return ["<PAD>", "<UNK>", *sorted(moves)]


def write_vocabulary(
    dataset: Path,
    out: Path,
    config: CacheConfig,
    counted: Mapping[str, Mapping[str, Any]],
    now: datetime,
    home: Path,
) -> int:
    """Write the vocabulary file of a cache."""
    words = words_of_train(dataset)
    meta = {
        "kind": VOCAB_KIND,
        "generated_at_utc": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "dataset_dir": os.path.abspath(home),  # noqa: PTH100
        "config": config.contract(),
        "splits": {
            split: {
                "path": f"{split}.jsonl",
                "game_rows": counted[split]["games"],
                "sample_rows": counted[split]["samples"],
            }
            for split in ("train", "val")
        },
        "vocab": {word: number for number, word in enumerate(words)},
        "vocab_size": len(words),
    }
    (out / VOCABULARY).write_text(json.dumps(meta, indent=2) + "\n")
    return len(words)
