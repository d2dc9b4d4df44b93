"""From a sample of any chess artifact to the bytes of its game in the PGN and in the drop.

Source: docs/formats/chess.md#game-records
"""

from __future__ import annotations

import json
import zipfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from gristmill import contract
from gristmill.chess.config import SPLITS
from gristmill.chess.format import folders
from gristmill.chess.format.folders import split_file, valid_file
from gristmill.chess.format.rows import FLAGS
from gristmill.chess.raw.drops import pgn_of, raw_offset, why_left_out
from gristmill.chess.read.samples import counts
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Request
from gristmill.history.rows import Kept
from gristmill.layout import DROPS
from gristmill.loading import source as loading
from gristmill.loading.past import Past
from gristmill.provenance import Record
from gristmill.provenance.trace_inputs import (
    Edge,
    NotTraced,
    Origin,
    Row,
    Source,
    Steps,
    source,
    walk,
)


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
    recorded = _sidecar(path, "games" if split is None else split)
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


def _sidecar(path: Path, rows: str) -> folders.Sidecar:
    recorded = folders.Sidecar.open(path, rows)
    if recorded is None:
        raise BadInput(path, f"has no {folders.FOLDER}/ to trace by; build it with this library")
    return recorded


def find(path: Path, game_id: str, played: Sequence[str] = ()) -> list[tuple[str | None, int]]:
    """The rows with a game id, each as (split, number of the row from 0)."""
    needle = f'"game_id": {json.dumps(game_id)}'.encode()
    places: list[tuple[str | None, int]] = []
    for split in (None,) if (path / folders.VALID).exists() else SPLITS:
        jsonl = valid_file(path) if split is None else split_file(path, split)
        with jsonl.open("rb") as file:
            for number, line in enumerate(filter(bytes.strip, file)):
                row = json.loads(line) if needle in line else {}
                if row.get("game_id") == game_id and row["moves"][: len(played)] == [*played]:
                    places.append((split, number))
    return places


def places(path: Path, which: str, split: str | None) -> list[tuple[int, str | None]]:
    """The rows of a game, each as (number of the row from 0, split).

    which: row number from 0, or game id. Several rows can have one id.
    split: split of a dataset; None for train with a row number, and for all with an id.

    Raises BadInput where there is no game with the id.
    """
    if which.isascii() and which.isdigit() and len(which) < 20:
        return [(int(which), None if folders.kind_of(path) == "validated" else split or "train")]
    found = [(row, each) for each, row in find(path, which) if split in (None, each)]
    if not found:
        raise BadInput(path, f"there is no game {which}")
    return found


PGN: Final = "chess/elite_pgn"
GAMES: Final = "chess/valid_games"
DATASET: Final = "chess/game_dataset"
SPLICES: Final = "chess/splice_dataset"
SAMPLE: Final = "a sample of a game dataset"


def traced(asset: str, request: Request) -> Iterator[contract.Trace]:
    """Where a row of an artifact came from. asset: its key.

    request: path is its folder. The sample is the number of a row or sample, from 0, in `split`
        (default train); of games also a game id. Of PGN it is not read.

    Raises BadInput where there is none.
    """
    path, split = request.path, request.options.get("split")
    if asset in (GAMES, DATASET):
        rows: Sequence[Any] = places(path, request.sample, split)
    else:
        rows = [None if asset == PGN else (request.number, split or "train")]
    for place in rows:
        yield from walk(EDGES, Row(asset, path, place))


def sample_origins(
    dataset: Path, split: str, sample: int, offset: int, index: int
) -> Iterator[contract.Trace]:
    """Trace a sample of a game dataset to its game.

    sample: its number, from 0, in the month and split. offset: byte of its row in the split.
    """
    return walk(EDGES, Row(SAMPLE, dataset, (sample, split, offset, index)))


def _game(path: Path, place: tuple[int, str | None]) -> Steps:
    """The edge of a game: its bytes in the PGN."""
    yield (found := trace(path, *place))
    made = source(path)
    if made.record.asset == DATASET:
        made = made.made_from(GAMES)
    end = found.pgn_offset + found.pgn_bytes
    name, sha256 = str(found.source["name"]), str(found.source["sha256"])
    yield Row(PGN, made.made_from(PGN).folder, (name, sha256, found.pgn_offset, end))


def _cached(path: Path, place: tuple[int, str]) -> Steps:
    """The edge of a splice cache: its splice index and row in the dataset."""
    sample, split = place
    dataset = source(path).made_from(DATASET).folder
    offset, index = (
        _value(path / split / name, sample) for name in (folders.OFFSETS, folders.SPLICE_INDICES)
    )
    yield Row(SAMPLE, dataset, (sample, split, offset, index))


def _dataset_sample(dataset: Path, place: tuple[int, str, int, int]) -> Steps:
    sample, split, offset, index = place
    row = row_at(dataset, split, offset)
    yield _sample(sample, split, index)
    yield Row(DATASET, dataset, (row, split))


def _splice(path: Path, place: tuple[int, str]) -> Steps:
    """The edge of a splice: its game among the valid ones; several of equal ids and moves."""
    sample, split = place
    games = source(path).made_from(GAMES).folder
    with split_file(path, split).open("rb") as file:
        text = next(islice(file, sample, None), None)
    if text is None:
        raise BadInput(split_file(path, split), f"has no sample {sample}; samples count from 0")
    line = json.loads(text)
    rows = find(games, str(line["game_id"]), [*line["context"], *line["target"]])
    if not rows:
        raise NotTraced(f"{games} has no game {line['game_id']} with the moves of this sample")
    yield _sample(sample, split, int(line["splice_index"]))
    for _, row in rows:
        yield Row(GAMES, games, (row, None))


def _subset(path: Path, place: tuple[int, str]) -> Steps:
    """The edge of a subset: the row of its dataset, of games or of splices."""
    row, split = place
    numbers = np.load(path / folders.subset_rows(split))
    if row >= len(numbers):
        rule = f"has {len(numbers)} rows, no row {row}; rows count from 0"
        raise BadInput(split_file(path, split), rule)
    number = int(numbers[row])
    dataset = source(path).made_from(DATASET, SPLICES)
    yield Origin({"row": f"{row} of {split}", "row_of_dataset": number})
    yield Row(dataset.record.asset, dataset.folder, (number, split))


def _pgn(path: Path, place: tuple[str, str, int, int] | None) -> Steps:
    """The edge of bytes of a PGN, or of each PGN of a month: the bytes in the drop."""
    made = source(path)
    name, _, *span = place or (None, None)
    files = [
        each
        for each in made.record.outputs
        if each.path.endswith(".pgn") and place in (None, (each.path, each.sha256, *span))
    ]
    if place is not None and not files:
        raise NotTraced(f"{made.title} has no {name} with these bytes: build the games again")
    for each in files:
        facts = {"pgn_file": f"{made.record.artifact}/{each.path}", "pgn_file_sha256": each.sha256}
        begin, end = span or (0, each.bytes)
        yield Origin(facts if span else facts | {"bytes": f"0-{end}"})
        yield Origin(_drop(made, each.path, begin, end))


EDGES: Final[Mapping[str, Edge]] = {
    PGN: _pgn,
    GAMES: _game,
    DATASET: _game,
    SAMPLE: _dataset_sample,
    "chess/splice_cache": _cached,
    SPLICES: _splice,
    "chess/subset": _subset,
}
"""From a row to the rows that it was made from, by asset."""


def _sample(sample: int, split: str, index: int) -> Origin:
    # The context ends with move `index`, counted from 0; the label is the next one.
    return Origin({"sample": f"{sample} of {split}", "splice_index": index, "ply": index + 1})


def _drop(made: Source, pgn: str, begin: int, end: int) -> dict[str, object]:
    """The place in the drop of bytes of a PGN."""
    drop = f"{DROPS}/chess/{made.record.partition}/"
    raw = {pgn_of(str(item.path).removeprefix(drop)): item for item in made.raw_inputs()}
    item = raw.get(pgn) if len(raw) > 1 else next(iter(raw.values()), None)
    if item is None:
        raise NotTraced(f"{made.title} names no drop")
    facts, name = made.raw_facts(item), str(item.path).lower()
    if made.record.config.get("encoding") in ("latin-1", "cp1252"):
        begin, end = (raw_offset(made.folder / pgn, byte) for byte in (begin, end))
    place = f"{begin}-{end}"
    if name.endswith(".zip"):
        with zipfile.ZipFile(made.raw_file(item)) as archive:
            names = [each for each in archive.namelist() if not why_left_out(each)]
        return facts | {"raw_member": names[0], "raw_unpacked_bytes": place}
    return facts | {"raw_bytes" if name.endswith(".pgn") else "raw_unpacked_bytes": place}


def _value(file: Path, index: int) -> int:
    """One value of an array of the cache."""
    kind = np.dtype(folders.LAYOUT[file.name])
    values = np.fromfile(file, kind, 1, offset=index * kind.itemsize)
    if not len(values):
        samples = file.stat().st_size // kind.itemsize
        raise BadInput(file, f"has {samples} samples, no sample {index}; samples count from 0")
    return int(values[0])


def row_at(dataset: Path, split: str, offset: int) -> int:
    """The row of a dataset whose line begins at a byte, by the sidecar."""
    recorded = _sidecar(dataset, split)

    def begins(number: int) -> int:
        return int(recorded.records(number, 1)[0]["row"])

    row = bisect_left(range(recorded.games), offset, key=begins)
    if row == recorded.games or begins(row) != offset:
        raise BadInput(dataset, f"no row of {split} begins at byte {offset}; build the cache again")
    return row


_RAW_PGNS: Final = "chess/raw/elite"
_ID: Final = 16
"""Characters of a game's id, which may be a hash, that are kept."""
_RECORDS: Final = 1 << 14


def rows(folder: Path, record: Record) -> Iterator[Kept]:
    """A row for each game, or splice, by its id, with its bytes in the PGN where they are known."""
    is_valid = (folder / folders.VALID).exists()
    sources = [each.get("name") for each in folders.read_sources(folder)]
    for split in ("",) if is_valid else SPLITS:
        path = folders.valid_file(folder) if is_valid else folders.split_file(folder, split)
        recorded = folders.Sidecar.open(folder, split or "games")
        batches = recorded.batches(_RECORDS) if recorded else ()
        places = chain.from_iterable(
            zip(*(games[name].tolist() for name in ("pgn", "size", "file")), strict=True)
            for *_, games in batches
        )
        with path.open("rb") as file:
            for number, line in enumerate(filter(bytes.strip, file)):
                row = orjson.loads(line)
                name = str(row["game_id"])[:_ID]
                if "splice_index" in row:
                    name = f"{name} splice {row['splice_index']}"
                begin, size, source = next(places, (-1, 0, -1))
                where, end = "", -1
                if 0 <= source < len(sources):
                    where, end = f"{_RAW_PGNS}/{record.partition}/{sources[source]}", begin + size
                plies = int(row.get("plies", 0))
                yield Kept(split, name, line, where, begin, end, number, 1, plies)


def past(kept: Past, **_: Any) -> loading.Source:
    """The samples of months as `dataset.opened` gives them."""
    config = kept.identity.numbering["cache"]
    if config["max_samples_per_game"]:
        raise GristmillError(
            f"{kept.identity.artifact}: which samples of each game were drawn is not kept; it is "
            "known where all are taken (max_samples_per_game = 0)"
        )
    least = config["min_context"], config["min_target"]
    return kept.of(counts=lambda plies: counts(plies, *least))
