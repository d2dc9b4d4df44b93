"""The folders of chess: names of their files, the sidecar, move keys, and which artifact one is.

`sidecar/` holds, for each set of rows (`games` if validated; `train`, `val`, `test` of a dataset):
    <rows>.games.bin    records of GAME, one a row, in row order
    <rows>.phases.bin   phase codes, one byte a ply, game after game
    <rows>.moves.u16.bin  moves as numbers, one a ply, game after game
    <rows>.spans.bin    in a dataset: records of SPAN, where each game's moves are
and sources.json (the PGNs), in a dataset also rows.json (the JSONL files that they describe).
Source: docs/formats/chess.md#folders, docs/formats/chess.md#sidecar,
docs/formats/chess.md#move-keys
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format.rows import WINNER_IDS
from gristmill.contract import BadInput, FileNote

# A raw month: where its PGN came from.
SOURCE = "source.json"

# A validated folder: the rows of valid games.
VALID = "valid_games.jsonl"
# One line for each rejected game, with the reason.
INVALID = "invalid_games.csv"
# One line for each flag of a valid game.
FLAGGED = "flagged_games.csv"
# Counts of the validation.
SUMMARY = "summary.json"
# Distributions that the UI draws.
PROFILE = "profile.json"

# A game dataset or a splice dataset: its counts and its config.
STATS = "stats.json"
# The rows that `drop_duplicates` left out, one line each.
DROPPED = "dropped_games.csv"

# The splice cache inside a game dataset.
CACHE_FOLDER = "runtime_splice_cache"
# What the cache was built from, with sizes and hashes.
CACHE_MANIFEST = "manifest.json"
# For each split of the cache: the paths that the path ids stand for.
CACHE_PATHS = "paths.json"
# The numbered moves of the train games, in the cache.
VOCABULARY = "vocab_rows_meta.json"


# A subset: its config, and rows by split and stratum.
SUBSET = "subset.json"
# The moves of its train rows: id, move, count.
SUBSET_VOCABULARY = "vocabulary.csv"


def subset_rows(split: str) -> str:
    """The file with the number of each row of a subset in its dataset: int64 [rows]."""
    return f"{split}_rows.npy"


def pgn_name(month: str) -> str:
    """The name of a month's PGN file."""
    return f"lichess_elite_{month}.pgn"


def split_file(dataset: Path, split: str) -> Path:
    """The JSONL file of a dataset's split."""
    return dataset / f"{split}.jsonl"


def valid_file(valid_games: Path) -> Path:
    """The JSONL file of valid games."""
    return valid_games / VALID if valid_games.is_dir() else valid_games


# For each sample: index into the paths file, always 0.
PATH_IDS = "path_ids.u32.bin"
# Byte offset of the game's row in the JSONL file.
OFFSETS = "offsets.u64.bin"
# Index of the last move of the context.
SPLICE_INDICES = "splice_indices.u32.bin"
# Phase id of the position after the context.
SAMPLE_PHASES = "sample_phase_ids.u8.bin"

# Number of the game among the rows of the split; no manifest names it, and readers do without it.
SAMPLE_GAMES = "sample_games.u32.bin"

# File name to dtype, in the order of the manifest.
LAYOUT = {
    PATH_IDS: "<u4",
    OFFSETS: "<u8",
    SPLICE_INDICES: "<u4",
    SAMPLE_PHASES: "|u1",
}


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


def _file_of(kind: str, root: Path, rows: str) -> Path:
    """The file of a kind of the set `rows` under `root`."""
    return root / FOLDER / f"{rows}.{kind}.bin"


games_file, phases_file = partial(_file_of, "games"), partial(_file_of, "phases")
moves_file, spans_file = partial(_file_of, "moves.u16"), partial(_file_of, "spans")


def spans_of(
    plies: NDArray[np.int64], winners: NDArray[np.int64], first: int = 0
) -> NDArray[np.void]:
    """Where the moves of games are; winners: letters as bytes, first: moves before them."""
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
        """The sidecar of a set of rows, or None; BadInput where its last record is cut."""
        games, phases = games_file(root, rows), phases_file(root, rows)
        if not games.exists() or not phases.exists():
            return None
        size = games.stat().st_size
        if size % GAME.itemsize:
            rule = f"its size is not a multiple of {GAME.itemsize} bytes; build the folder again"
            raise BadInput(games, rule)
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
        at = start * GAME.itemsize
        return np.fromfile(games_file(self.root, self.rows), GAME, count, offset=at)

    def phases(self, start: int, count: int) -> NDArray[np.uint8]:
        """Phase codes of consecutive plies, uint8 [count]; BadInput if the file ends before."""
        file = phases_file(self.root, self.rows)
        codes = np.fromfile(file, np.uint8, count, offset=start)
        if len(codes) != count:
            rule = "has fewer plies than the game records next to it; build the folder again"
            raise BadInput(file, rule)
        return codes

    def batches(self, games: int) -> Iterator[tuple[int, int, NDArray[np.void]]]:
        """All records in batches: (number of the first game, number of its first ply, records).

        Raises BadInput at the end if the phases file has another number of plies.
        """
        ply = 0
        for start in range(0, self.games, games):
            records = self.records(start, games)
            yield start, ply, records
            ply += int(records["plies"].sum(dtype=np.int64))
        if ply != self.plies:
            rule = f"has {self.plies} plies, the game records have {ply}"
            raise BadInput(phases_file(self.root, self.rows), rule)


def read_sources(root: Path) -> list[dict[str, Any]]:
    """The PGN files, each with name, bytes and sha256 (docs/formats/chess.md#sidecar-sources)."""
    path = sources_file(root)
    if not path.exists():
        return []
    sources = _read_object(path).get("sources")
    if not isinstance(sources, list) or not all(
        isinstance(entry, dict)
        and type(entry.get("bytes")) is int
        and isinstance(entry.get("sha256"), str)
        for entry in sources
    ):
        raise BadInput(path, "is no list of PGN files; build the folder again")
    return sources


def rows_file(root: Path) -> Path:
    """The list of JSONL files under `root`."""
    return root / FOLDER / "rows.json"


def write_rows(root: Path, notes: Mapping[str, FileNote]) -> None:
    """Write `rows.json` by the notes of JSONL files (docs/formats/chess.md#sidecar-rows)."""
    described = {
        name: {"bytes": note.bytes, "sha256": note.sha256, "rows": note.rows}
        for name, note in notes.items()
    }
    rows_file(root).write_text(json.dumps(described, indent=2))


def read_rows(root: Path) -> dict[str, dict[str, Any]]:
    """By split: bytes, sha256 and rows of the JSONL file (docs/formats/chess.md#sidecar-rows)."""
    path = rows_file(root)
    return _read_object(path) if path.exists() else {}


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(path, f"cannot be read ({error}); build the folder again") from error
    if not isinstance(value, dict):
        raise BadInput(path, "not a JSON object; build the folder again")
    return value


_KEYS_IN_MEMORY = 1 << 20  # about
_RECORDS_PER_READ = 1 << 15


def _passes(files: Sequence[Path]) -> int:
    """The number of key ranges to work through, a power of two."""
    total = sum(path.stat().st_size for path in files) // GAME.itemsize
    passes = 1
    while total > passes * _KEYS_IN_MEMORY:
        passes *= 2
    return passes


def _within(path: Path, number: int, passes: int) -> NDArray[np.uint64]:
    """The keys of a file that lie in key range `number` of `passes`."""
    shift = np.uint64(64 - (passes.bit_length() - 1)) if passes > 1 else None
    picked = [np.zeros(0, np.uint64)]
    with path.open("rb") as file:
        while len(records := np.fromfile(file, GAME, _RECORDS_PER_READ)):
            keys = records["move_key"]
            picked.append(keys if shift is None else keys[(keys >> shift) == np.uint64(number)])
    return np.concatenate(picked)


def count_duplicates(files: Sequence[Path]) -> int:
    """The number of games whose moves an earlier game of these files has too."""
    passes, duplicates = _passes(files), 0
    for number in range(passes):
        keys = np.concatenate([_within(path, number, passes) for path in files])
        duplicates += len(keys) - len(np.unique(keys))
    return duplicates


def repeated_keys(path: Path) -> NDArray[np.uint64]:
    """The move keys that more than one game of a file has, uint64 [keys]."""
    passes, repeated = _passes([path]), []
    for number in range(passes):
        keys, times = np.unique(_within(path, number, passes), return_counts=True)
        repeated.append(keys[times > 1])
    return np.concatenate(repeated)


def count_shared(files: Sequence[Path]) -> int:
    """The number of move keys that are in more than one of these files: leakage."""
    passes, shared = _passes(files), 0
    for number in range(passes):
        by_file = [np.unique(_within(path, number, passes)) for path in files]
        if by_file:
            _, times = np.unique(np.concatenate(by_file), return_counts=True)
            shared += int((times > 1).sum())
    return shared


def split_of(
    keys: NDArray[np.uint64], seed: int, train_ratio: float, val_ratio: float
) -> NDArray[np.uint8]:
    """The split of move keys: 0 train, 1 val, 2 test (docs/formats/chess.md#split-by-moves)."""
    # splitmix64 of the key plus the seed; its top 53 bits are a number in [0, 1).
    with np.errstate(over="ignore"):
        z = keys.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    place = (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return np.where(place < train_ratio, 0, np.where(place < train_ratio + val_ratio, 1, 2)).astype(
        np.uint8
    )


_ASSETS = {
    "validated": "chess/valid_games",
    "dataset": "chess/game_dataset",
    "cache": "chess/splice_cache",
    "splices": "chess/splice_dataset",
    "subset": "chess/subset",
}


def kind_of(path: Path) -> str | None:
    """The kind of a chess folder (docs/formats/chess.md#folders); BadInput for damaged stats."""
    if (path / VALID).is_file():
        return "validated"
    if (path / "train" / SPLICE_INDICES).is_file():
        return "cache"
    if (path / SUBSET).is_file():
        return "subset"
    if split_file(path, "train").is_file() and (path / STATS).is_file():
        return "dataset" if "dataset_format" in _read_object(path / STATS) else "splices"
    return None


def asset_of(folder: Path) -> str | None:
    """The asset whose laws and views a folder without a record takes, None where it has none."""
    if (folder / SOURCE).is_file() and any(folder.glob("*.pgn")):
        return "chess/elite_pgn"
    return _ASSETS.get(kind_of(folder) or "")
