"""From a row back to the PGN that it was made of: file, byte offset, length."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill import contract
from gristmill.chess.config import SPLITS
from gristmill.chess.format import sidecar
from gristmill.chess.format.names import valid_file
from gristmill.chess.format.rows import FLAGS
from gristmill.contract import BadInput


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where a game came from.

    source: name, bytes and sha256 of the PGN file.
    pgn_offset, pgn_bytes: the game's place in that file, in bytes.
    flags: names of `rows.FLAGS`.
    row: the row itself.
    number: the row's number, from 0.
    split: the dataset's split with the row, None in a validated folder.
    """

    source: dict[str, Any]
    pgn_offset: int
    pgn_bytes: int
    flags: tuple[str, ...]
    row: dict[str, Any]
    number: int = 0
    split: str | None = None

    def facts(self) -> dict[str, object]:
        return {
            "game_id": self.row["game_id"],
            "row": f"{self.number} of {self.split}" if self.split else self.number,
            "pgn": f"{self.source['name']} ({self.source['bytes']} bytes)",
            "pgn_sha256": self.source["sha256"],
            "byte_offset": self.pgn_offset,
            "bytes": self.pgn_bytes,
            "flags": ", ".join(self.flags) or "none",
        }

    def pgn(self, file: Path) -> bytes:
        """The game's bytes out of its PGN file. Raises BadInput if that is another file."""
        if file.stat().st_size != self.source["bytes"]:
            raise BadInput(file, f"has not the {self.source['bytes']} bytes of the traced file")
        with file.open("rb") as handle:
            handle.seek(self.pgn_offset)
            return handle.read(self.pgn_bytes)


def trace(path: Path, row: int, split: str | None = None) -> Trace:
    """Trace row number `row` (0-based) of a validated folder, or of a dataset's `split`.

    Raises BadInput where there is no sidecar or no such row.
    """
    rows = "games" if split is None else split
    if split is not None and split not in SPLITS:
        raise BadInput(path, f"split must be one of {SPLITS}, not {split!r}")
    beside = sidecar.Sidecar.open(path, rows)
    if beside is None:
        raise BadInput(path, f"has no {sidecar.FOLDER}/ to trace by; build it with this library")
    if not 0 <= row < beside.games:
        raise BadInput(path, f"has {beside.games} games, no row {row}")
    record = beside.records(row, 1)[0]
    jsonl = valid_file(path) if split is None else path / f"{split}.jsonl"
    with jsonl.open("rb") as file:
        file.seek(int(record["row"]))
        line = json.loads(file.readline())
    number = int(record["file"])
    sources = sidecar.read_sources(path)
    if number >= len(sources):
        raise BadInput(path, f"row {row} was not made from a known PGN file")
    flags = int(record["flags"])
    return Trace(
        source=sources[number],
        pgn_offset=int(record["pgn"]),
        pgn_bytes=int(record["size"]),
        flags=tuple(name for bit, name in FLAGS.items() if flags & bit),
        row=line,
        number=row,
        split=split,
    )


def find(path: Path, game_id: str) -> list[tuple[str | None, int]]:
    """(split, row) of every row with this id; split is None in a validated folder."""
    needle = f'"game_id": {json.dumps(game_id)}'.encode()
    splits = (None,) if (path / "valid_games.jsonl").exists() else SPLITS
    found: list[tuple[str | None, int]] = []
    for split in splits:
        jsonl = valid_file(path) if split is None else path / f"{split}.jsonl"
        number = 0
        with jsonl.open("rb") as file:
            for line in file:
                if line.strip():
                    if needle in line:
                        found.append((split, number))
                    number += 1
    return found
