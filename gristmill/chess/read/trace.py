"""From a row back to its game in the PGN: file, byte offset, length.

Source: docs/formats/chess.md#game-records
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill import contract
from gristmill.chess.config import SPLITS
from gristmill.chess.format import folders
from gristmill.chess.format.folders import VALID, kind_of, split_file, valid_file
from gristmill.chess.format.rows import FLAGS
from gristmill.contract import BadInput


@dataclass(frozen=True)
class Trace(contract.Trace):
    """The origin of a row.

    source: `name`, `bytes` and `sha256` of the PGN file.
    pgn_offset: byte offset of the game in it.
    pgn_bytes: bytes of the game.
    flags: names of the game's flags (docs/formats/chess.md#flags).
    row: the row itself.
    number: number of the row, from 0; 0 by default.
    split: the split of the dataset; None (the default) in a validated folder.
    """

    source: dict[str, Any]
    pgn_offset: int
    pgn_bytes: int
    flags: tuple[str, ...]
    row: dict[str, Any]
    number: int = 0
    split: str | None = None

    def facts(self) -> dict[str, object]:
        """The facts that the command line shows, by name."""
        return {
            "game_id": self.row["game_id"],
            "row": f"{self.number} of {self.split}" if self.split else self.number,
            "pgn": f"{self.source['name']} ({self.source['bytes']} bytes)",
            "pgn_sha256": self.source["sha256"],
            "byte_offset": self.pgn_offset,
            "bytes": self.pgn_bytes,
            "flags": ", ".join(self.flags) or "none",
        }

    def pgn(self, file: Path | str) -> bytes:
        """The bytes of the game. Raises BadInput for a PGN of another size than `source` has."""
        file = Path(file)
        if file.stat().st_size != self.source["bytes"]:
            raise BadInput(
                file,
                f"does not have the {self.source['bytes']} bytes of {self.source['name']}; "
                "pass the PGN that the row was made from",
            )
        with file.open("rb") as handle:
            handle.seek(self.pgn_offset)
            return handle.read(self.pgn_bytes)


def trace(path: Path | str, row: int, split: str | None = None) -> Trace:
    """Trace a row back to its game in the PGN.

    path: a validated folder, or a game dataset.
    row: number of the row, from 0.
    split: `train`, `val` or `test` of a dataset; None (the default) for a validated folder.

    Raises BadInput for an unknown split, where there is no sidecar, and for a row that
    does not exist or was not made from a known PGN.
    """
    path = Path(path)
    if split is not None and split not in SPLITS:
        raise BadInput(path, f"split must be one of {SPLITS}, not {split!r}")
    recorded = folders.Sidecar.open(path, "games" if split is None else split)
    if recorded is None:
        raise BadInput(path, f"has no {folders.FOLDER}/ to trace by; build it with this library")
    if not 0 <= row < recorded.games:
        raise BadInput(path, f"has {recorded.games} games, no row {row}; rows count from 0")
    record = recorded.records(row, 1)[0]
    jsonl = valid_file(path) if split is None else split_file(path, split)
    with jsonl.open("rb") as file:
        file.seek(int(record["row"]))
        line = json.loads(file.readline())
    number = int(record["file"])
    sources = folders.read_sources(path)
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
    """The rows with a game id, each as (split, number of the row from 0).

    path: a validated folder, where the split is None, or a dataset.
    """
    needle = f'"game_id": {json.dumps(game_id)}'.encode()
    splits = (None,) if (path / VALID).exists() else SPLITS
    places: list[tuple[str | None, int]] = []
    for split in splits:
        jsonl = valid_file(path) if split is None else split_file(path, split)
        number = 0
        with jsonl.open("rb") as file:
            for line in file:
                if line.strip():
                    if needle in line:
                        places.append((split, number))
                    number += 1
    return places


def traces(path: Path, which: str, split: str | None) -> list[Trace]:
    """Trace a game back to its PGN.

    which: row number from 0, or game id. Several rows can have one id.
    split: split of a dataset; None for train with a row number, and for all with an id.

    Returns one trace for each row.
    Raises BadInput where there is no such game.
    """
    places: list[tuple[str | None, int]]
    if which.isascii() and which.isdigit() and len(which) < 20:
        places = [(None if kind_of(path) == "validated" else split or "train", int(which))]
    else:
        places = [row for row in find(path, which) if split in (None, row[0])]
    if not places:
        raise BadInput(path, f"there is no game {which}")
    return [trace(path, row, split) for split, row in places]
