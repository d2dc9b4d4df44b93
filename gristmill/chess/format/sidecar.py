"""The sidecar of validated games and of datasets: per game where it came from, per ply its phase.

`sidecar/` holds, for a set of rows (`games`, or a split's name):
    <rows>.games.bin    records of GAME, one a row, in row order
    <rows>.phases.bin   one byte a ply, games laid end to end: the phase code
                        (phase id in the low two bits, see `rows.PHASE_REASONS`)
`sources.json`, the PGN files with their bytes and sha256, and in a dataset
`rows.json`, the JSONL files that the records are of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file

FOLDER = "sidecar"
# row: byte offset of the row's line in its JSONL file. pgn, size: byte offset
# and length of the game in PGN file number `file` of sources.json. move_key:
# first 8 bytes, big end first, of SHA-256 over the UCI moves joined by spaces.
GAME = np.dtype(
    [
        ("row", "<u8"),
        ("pgn", "<u8"),
        ("size", "<u4"),
        ("file", "<u4"),
        ("plies", "<u4"),
        ("flags", "<u4"),
        ("move_key", "<u8"),
    ]
)
NO_SOURCE = 0xFFFFFFFF


def games_file(root: Path, rows: str) -> Path:
    return root / FOLDER / f"{rows}.games.bin"


def phases_file(root: Path, rows: str) -> Path:
    return root / FOLDER / f"{rows}.phases.bin"


def sources_file(root: Path) -> Path:
    return root / FOLDER / "sources.json"


@dataclass(frozen=True)
class Sidecar:
    """A sidecar on disk, read in pieces (a map of the whole file would count as memory)."""

    root: Path
    rows: str
    games: int
    plies: int

    @staticmethod
    def open(root: Path, rows: str) -> Sidecar | None:
        """The sidecar of `rows` under `root`, or None where there is none.

        Raises BadInput if its files do not fit together.
        """
        games, phases = games_file(root, rows), phases_file(root, rows)
        if not games.exists() or not phases.exists():
            return None
        size = games.stat().st_size
        if size % GAME.itemsize:
            raise BadInput(games, f"size is not a multiple of {GAME.itemsize} bytes")
        return Sidecar(root, rows, size // GAME.itemsize, phases.stat().st_size)

    def records(self, start: int, count: int) -> NDArray[np.void]:
        """Records [start, start + count), fewer at the end."""
        with games_file(self.root, self.rows).open("rb") as file:
            file.seek(start * GAME.itemsize)
            data = file.read(count * GAME.itemsize)
        return np.frombuffer(data, GAME)

    def phases(self, start: int, count: int) -> NDArray[np.uint8]:
        """Phase codes of plies [start, start + count) in the order of the rows."""
        with phases_file(self.root, self.rows).open("rb") as file:
            file.seek(start)
            data = file.read(count)
        if len(data) != count:
            raise BadInput(
                phases_file(self.root, self.rows), "has fewer plies than the games beside it"
            )
        return np.frombuffer(data, np.uint8)

    def blocks(self, games: int) -> Iterator[tuple[int, int, NDArray[np.void]]]:
        """(first game, first ply, records) of blocks of at most `games` games."""
        ply = 0
        for start in range(0, self.games, games):
            records = self.records(start, games)
            yield start, ply, records
            ply += int(records["plies"].sum(dtype=np.int64))
        if ply != self.plies:
            raise BadInput(
                phases_file(self.root, self.rows), f"has {self.plies} plies, its games {ply}"
            )


def read_sources(root: Path) -> list[dict[str, Any]]:
    """The PGN files: name, bytes, sha256."""
    path = sources_file(root)
    if not path.exists():
        return []
    sources: list[dict[str, Any]] = json.loads(path.read_bytes())["sources"]
    return sources


def rows_file(root: Path) -> Path:
    return root / FOLDER / "rows.json"


def write_rows(root: Path, files: Mapping[str, tuple[Path, int]]) -> None:
    """Note bytes, sha256 and rows of each split's JSONL file in rows.json."""
    noted = {
        name: {"bytes": path.stat().st_size, "sha256": sha256_file(path), "rows": count}
        for name, (path, count) in files.items()
    }
    rows_file(root).write_text(json.dumps(noted, indent=2))


def read_rows(root: Path) -> dict[str, dict[str, Any]]:
    """What `write_rows` noted; empty where there is no sidecar."""
    path = rows_file(root)
    if not path.exists():
        return {}
    noted: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    return noted
