"""The sidecar: for each game its place in the PGN, for each ply its phase.

`sidecar/` holds, for each set of rows (`games` if validated; `train`, `val`, `test` of a dataset):
    <rows>.games.bin    records of GAME, one a row, in row order
    <rows>.phases.bin   phase codes, one byte a ply, game after game
    <rows>.moves.u16.bin  moves as numbers, one a ply, game after game
    <rows>.spans.bin    in a dataset: records of SPAN, where each game's moves are
and sources.json (the PGNs), in a dataset also rows.json (the JSONL files that they describe).
Source: docs/formats/chess.md#sidecar
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format.rows import WINNER_IDS
from gristmill.contract import BadInput
from gristmill.hashing import sha256_file

FOLDER = "sidecar"
# docs/formats/chess.md#game-records
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
# docs/formats/chess.md#packed-moves
MOVE = np.dtype("<u2")
SPAN = np.dtype([("first", "<u8"), ("plies", "<u4"), ("winner", "<u4")])
_WINNERS = np.full(256, 3, "<u4")
_WINNERS[[ord(side) for side in WINNER_IDS]] = list(WINNER_IDS.values())
# `file` of a record whose PGN is not known.
NO_SOURCE = 0xFFFFFFFF


def games_file(root: Path, rows: str) -> Path:
    """The file of game records of the set `rows` under `root`."""
    return root / FOLDER / f"{rows}.games.bin"


def phases_file(root: Path, rows: str) -> Path:
    """The file of phase codes of the set `rows` under `root`."""
    return root / FOLDER / f"{rows}.phases.bin"


def moves_file(root: Path, rows: str) -> Path:
    """The file of packed moves of the set `rows` under `root`."""
    return root / FOLDER / f"{rows}.moves.u16.bin"


def spans_file(root: Path, rows: str) -> Path:
    """The file of records of SPAN of the set `rows` under `root`."""
    return root / FOLDER / f"{rows}.spans.bin"


def spans_of(
    plies: NDArray[np.int64], winners: NDArray[np.int64], first: int = 0
) -> NDArray[np.void]:
    """Where the moves of games are.

    plies: of each game. winners: the letter of each, as a byte. first: moves before them, 0 by
        default.
    """
    spans = np.zeros(len(plies), SPAN)
    spans["first"] = np.cumsum(plies) - plies + first
    spans["plies"], spans["winner"] = plies, _WINNERS[winners]
    return spans


def sources_file(root: Path) -> Path:
    """The list of PGN files under `root`."""
    return root / FOLDER / "sources.json"


@dataclass(frozen=True)
class Sidecar:
    """A sidecar on disk, read in batches: a map of the whole file would count as memory."""

    root: Path
    rows: str
    games: int
    plies: int

    @staticmethod
    def open(root: Path, rows: str) -> Sidecar | None:
        """The sidecar of a set of rows, or None where there is none.

        Raises BadInput if the records file is not a whole number of records.
        """
        games, phases = games_file(root, rows), phases_file(root, rows)
        if not games.exists() or not phases.exists():
            return None
        size = games.stat().st_size
        if size % GAME.itemsize:
            raise BadInput(
                games,
                f"its size is not a multiple of {GAME.itemsize} bytes; build the folder again",
            )
        return Sidecar(root, rows, size // GAME.itemsize, phases.stat().st_size)

    @property
    def has_moves(self) -> bool:
        """Whether the moves are there: folders of the code version before have none."""
        files = (of(self.root, self.rows) for of in (moves_file, spans_file))
        return any(file.exists() for file in files)

    def moves(self, start: int, count: int) -> NDArray[np.uint16]:
        """Packed moves of consecutive plies, arguments as `phases`; fewer at the end."""
        return np.fromfile(moves_file(self.root, self.rows), MOVE, count, offset=2 * start)

    def spans(self, start: int, count: int) -> NDArray[np.void]:
        """Spans of consecutive games, arguments as `records`."""
        at = start * SPAN.itemsize
        return np.fromfile(spans_file(self.root, self.rows), SPAN, count, offset=at)

    def records(self, start: int, count: int) -> NDArray[np.void]:
        """Records of consecutive games; fewer are returned at the end."""
        with games_file(self.root, self.rows).open("rb") as file:
            file.seek(start * GAME.itemsize)
            data = file.read(count * GAME.itemsize)
        return np.frombuffer(data, GAME)

    def phases(self, start: int, count: int) -> NDArray[np.uint8]:
        """Phase codes of consecutive plies, uint8 [count].

        Raises BadInput if the file ends before them.
        """
        with phases_file(self.root, self.rows).open("rb") as file:
            file.seek(start)
            data = file.read(count)
        if len(data) != count:
            raise BadInput(
                phases_file(self.root, self.rows),
                "has fewer plies than the game records next to it; build the folder again",
            )
        return np.frombuffer(data, np.uint8)

    def batches(self, games: int) -> Iterator[tuple[int, int, NDArray[np.void]]]:
        """All records in batches: (number of the first game, number of its first ply, records).

        games: games in a batch at most.

        Raises BadInput at the end if the phases file has another number of plies.
        """
        ply = 0
        for start in range(0, self.games, games):
            records = self.records(start, games)
            yield start, ply, records
            ply += int(records["plies"].sum(dtype=np.int64))
        if ply != self.plies:
            raise BadInput(
                phases_file(self.root, self.rows),
                f"has {self.plies} plies, the game records have {ply}",
            )


def read_sources(root: Path) -> list[dict[str, Any]]:
    """The PGN files, each with name, bytes and sha256 (docs/formats/chess.md#sidecar-sources)."""
    path = sources_file(root)
    if not path.exists():
        return []
    value = _read_object(path)
    sources = value.get("sources")
    if not isinstance(sources, list) or not all(map(_is_file_entry, sources)):
        raise BadInput(path, "is no list of PGN files; build the folder again")
    return sources


def rows_file(root: Path) -> Path:
    """The list of JSONL files under `root`."""
    return root / FOLDER / "rows.json"


def write_rows(root: Path, files: Mapping[str, tuple[Path, int]]) -> None:
    """Write `rows.json` (docs/formats/chess.md#sidecar-rows)."""
    described = {
        name: {"bytes": path.stat().st_size, "sha256": sha256_file(path), "rows": count}
        for name, (path, count) in files.items()
    }
    rows_file(root).write_text(json.dumps(described, indent=2))


def read_rows(root: Path) -> dict[str, dict[str, Any]]:
    """By split: bytes, sha256 and rows of the JSONL file (docs/formats/chess.md#sidecar-rows)."""
    path = rows_file(root)
    if not path.exists():
        return {}
    described: dict[str, dict[str, Any]] = _read_object(path)
    return described


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(path, f"cannot be read ({error}); build the folder again") from error
    if not isinstance(value, dict):
        raise BadInput(path, "not a JSON object; build the folder again")
    return value


def _is_file_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and type(entry.get("bytes")) is int
        and isinstance(entry.get("sha256"), str)
    )
