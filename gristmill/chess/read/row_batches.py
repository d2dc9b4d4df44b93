"""Rows of validated games or of a dataset, read a block of lines at a time.

A block knows its rows' bytes, moves, move keys and phase codes. The codes come
from the sidecar where there is one, which must then agree with every row;
without it the moves are replayed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format import rows
from gristmill.chess.format.sidecar import NO_SOURCE, Sidecar
from gristmill.chess.read.phases import replayed
from gristmill.contract import BadInput

_WINDOW = 1 << 16
_MOST_PLIES = 10**9  # the digits that the kernels read


@dataclass(frozen=True)
class RowShare:
    """Whole lines [start, stop) of a JSONL file; `first` and `ply` count what lies before.

    first, ply: rows and plies before `start`, -1 where there is no sidecar.
    """

    path: Path
    start: int
    stop: int
    sidecar: Sidecar | None = None
    first: int = -1
    ply: int = -1


@dataclass
class Block:
    """The rows of a share (columns of `found`: `kernels.rowtext`).

    moves: packed, uint16, and codes: phase codes, one a ply, rows end to end.
    keys: move keys, uint64.
    records: the sidecar's, made up (without a source) where there is none.
    """

    share: RowShare
    buf: NDArray[np.uint8]
    found: NDArray[np.int64]
    moves: NDArray[np.uint16]
    uci: bytes
    keys: NDArray[np.uint64]
    codes: NDArray[np.uint8]
    records: NDArray[np.void]

    def ids(self) -> list[str]:
        """The games' ids, unescaped."""
        from gristmill.chess.kernels import rowshape

        text = self.buf.tobytes()
        return [
            str(json.loads(text[a - 1 : b + 1]))
            for a, b in self.found[:, [rowshape.ID0, rowshape.ID1]].tolist()
        ]


def shares(path: Path, share_bytes: int, sidecar: Sidecar | None) -> Iterator[RowShare]:
    """Cut a JSONL file into shares of whole lines; with a sidecar, count rows and plies."""
    size = path.stat().st_size
    cuts = [0]
    with path.open("rb", buffering=0) as file:
        while cuts[-1] < size:
            at = cuts[-1] + share_bytes
            while at < size:
                window = os.pread(file.fileno(), _WINDOW, at)
                newline = window.find(b"\n")
                if newline >= 0:
                    at += newline + 1
                    break
                at += len(window)
            cuts.append(min(at, size))
    places: list[tuple[int, int]] = [(0, 0)] if sidecar else []
    if sidecar:
        row, ply = 0, 0
        for _, _, records in sidecar.blocks(1 << 14):
            offsets = records["row"]
            ends = np.cumsum(records["plies"], dtype=np.int64)
            while len(places) < len(cuts) and (
                n := int(np.searchsorted(offsets, cuts[len(places)]))
            ) < len(records):
                places.append((row + n, ply + int(ends[n - 1] if n else 0)))
            row, ply = row + len(records), ply + int(ends[-1])
        places += [(row, ply)] * (len(cuts) - len(places))
    for i in range(len(cuts) - 1):
        first, plies = places[i] if places else (-1, -1)
        yield RowShare(path, cuts[i], cuts[i + 1], sidecar, first, plies)


def _row_number(share: RowShare, number: int) -> int:
    """The number in its file, from 1 and without blank lines, of a row numbered in its share."""
    place = 0
    with share.path.open("rb") as file:
        while place < share.start:
            line = file.readline()
            place += len(line)
            number += bool(line.strip())
    return number


def _canonical(share: RowShare, line: bytes, number: int) -> bytes:
    """A row of any JSON shape in the shape that the kernels take."""
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError("not a JSON object")
    except ValueError as error:
        rule = f"the row is not a JSON object ({error})"
        raise BadInput(share.path, rule, _row_number(share, number)) from error
    moves = rows.moves_of(row)
    winner, result, plies = row.get("winner_side", "?"), row.get("result"), row.get("plies")
    headers = row.get("headers")
    plain = isinstance(headers, dict) and all(isinstance(v, str) for v in headers.values())
    out: dict[str, Any] = {
        "game_id": str(row.get("game_id") or ""),
        "source_file": str(row.get("source_file") or ""),
        "headers": headers if plain else {},
        "result": result if isinstance(result, str) else "*",
        "winner_side": winner if winner in ("W", "B", "D") else "?",
        "plies": plies if type(plies) is int and 0 <= plies < _MOST_PLIES else len(moves),
        "moves": moves,
    }
    return json.dumps(out).encode() + b"\n"


def _find(data: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint16], bytes]:
    from gristmill.chess.kernels import rowshape, rowtext

    size = len(data)
    buf = np.zeros(size + 64, np.uint8)
    buf[:size] = np.frombuffer(data, np.uint8)
    records = np.zeros((data.count(b"\n") + 1, rowshape.COLUMNS), np.int64)
    moves = np.zeros(size // 3 + 16, np.uint16)
    uci = np.zeros(size + 16, np.uint8)
    n = rowtext.find_rows(buf, size, records, moves, uci)
    found = records[:n]
    plies = int(found[:, rowshape.N].sum())
    used = int(found[-1, rowshape.UCI1]) if n else 0
    return buf, found, moves[:plies], uci[:used].tobytes()


def find_block(
    share: RowShare,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint16], bytes]:
    """A share's bytes, the rows found there, their packed moves, and their moves as text.

    Raises BadInput, naming the row, for a line that is no JSON object or has
    moves that are not plain text.
    """
    from gristmill.chess.kernels import rowshape

    with share.path.open("rb", buffering=0) as file:
        data = os.pread(file.fileno(), share.stop - share.start, share.start)
    buf, found, moves, uci = _find(data)
    if found[:, rowshape.ODD].any():
        lines = [
            _canonical(share, data[a:b], i + 1) if odd else data[a:b] + b"\n"
            for i, (a, b, odd) in enumerate(
                found[:, [rowshape.LINE0, rowshape.LINE1, rowshape.ODD]].tolist()
            )
        ]
        buf, found, moves, uci = _find(b"".join(lines))
        if found[:, rowshape.ODD].any():
            number = int(np.flatnonzero(found[:, rowshape.ODD])[0]) + 1
            rule = "the row has moves that are not plain text"
            raise BadInput(share.path, rule, _row_number(share, number))
    return buf, found, moves, uci


def read_block(share: RowShare) -> Block:
    """Read a share's rows.

    Raises BadInput, naming the row, for a line that is no JSON object or has
    moves that are not text, and where the sidecar is not of these rows.
    """
    from gristmill.chess.kernels import rowshape

    buf, found, moves, uci = find_block(share)
    sha256 = hashlib.sha256
    digests = b"".join(
        [
            sha256(uci[a:b]).digest()[:8]
            for a, b in found[:, [rowshape.UCI0, rowshape.UCI1]].tolist()
        ]
    )
    keys = np.frombuffer(digests, ">u8").astype(np.uint64)
    if share.sidecar:
        records, codes = _from_sidecar(share, share.sidecar, found, keys)
    else:
        records, codes = _made_up(share, found, keys, moves)
    return Block(share, buf, found, moves, uci, keys, codes, records)


def _from_sidecar(
    share: RowShare, sidecar: Sidecar, found: NDArray[np.int64], keys: NDArray[np.uint64]
) -> tuple[NDArray[np.void], NDArray[np.uint8]]:
    from gristmill.chess.kernels import rowshape

    records = sidecar.records(share.first, len(found))
    fits = (
        len(records) == len(found)
        and (records["row"].astype(np.int64) == found[:, rowshape.LINE0] + share.start).all()
        and (records["plies"] == found[:, rowshape.N]).all()
        and (records["move_key"] == keys).all()
    )
    if not fits:
        raise BadInput(
            share.path,
            f"the rows from byte {share.start} on are not those of its sidecar; validate again, "
            "or remove the sidecar folder to have the games replayed",
        )
    return records, sidecar.phases(share.ply, int(records["plies"].sum(dtype=np.int64)))


def _made_up(
    share: RowShare,
    found: NDArray[np.int64],
    keys: NDArray[np.uint64],
    moves: NDArray[np.uint16],
) -> tuple[NDArray[np.void], NDArray[np.uint8]]:
    from gristmill.chess.format.sidecar import GAME
    from gristmill.chess.kernels import rowshape

    records = np.zeros(len(found), GAME)
    records["row"] = found[:, rowshape.LINE0] + share.start
    records["file"] = NO_SOURCE
    records["plies"] = found[:, rowshape.N]
    records["move_key"] = keys
    return records, replayed(moves, found[:, rowshape.N])
