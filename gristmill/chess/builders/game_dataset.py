"""Validated games to a game dataset, and a game dataset to its runtime splice cache.

A dataset has one compact row a game, three splits, stats and a sidecar. Packed moves are written
where the validated games have them, so that months which were validated before keep their bytes.
A cache has parallel arrays, one element a sample, in a folder of its dataset.
Source: docs/formats/chess.md#game-dataset and docs/formats/chess.md#splice-cache
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.builders.splits import (
    SplitTask,
    contexts_in_train,
    eligible,
    rule_stats,
    shared_sequences,
    split_tasks,
)
from gristmill.chess.config import SPLITS, CacheConfig, GameConfig
from gristmill.chess.format import folders, rows
from gristmill.chess.format.folders import (
    CACHE_MANIFEST,
    CACHE_PATHS,
    LAYOUT,
    SAMPLE_GAMES,
    STATS,
    count_duplicates,
    valid_file,
)
from gristmill.chess.read.row_batches import read_batch, write_vocabulary
from gristmill.chess.read.samples import make_samples, sample_tasks
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import sha256_file
from gristmill.layout import published_path
from gristmill.run.parts import Bytes, Made, PartStore, StreamFiles, run_streams
from gristmill.run.progress import SILENT, Progress, Stage


@dataclass(frozen=True)
class GameSummary(Summary):
    """Counts of a game dataset."""

    input_games: int
    eligible_games: int
    spliceable_games: int
    games: Mapping[str, int]
    plies: Mapping[str, int]
    duplicate_games: int
    dropped_duplicates: int
    shared_sequences: int
    contexts_in_train: Mapping[str, float]


def _make(task: SplitTask[GameConfig]) -> Made:
    """Rows, game records and phase codes of a byte range by split, and their counts."""
    from gristmill.chess.kernels import rowshape, rowtext

    batch = read_batch(task.range)
    accepted, _ = eligible(batch, task.config)
    places = task.places(batch)
    plies = batch.columns[:, rowshape.N]
    out = np.empty(len(batch.buf) + 128 * len(batch.columns), np.uint8)
    used = 0
    streams: dict[str, Bytes] = {}
    summary: dict[str, Any] = {"games": len(batch.columns), "eligible": int(accepted.sum())}
    for number, split in enumerate(SPLITS):
        picked = places == number
        lengths = np.zeros(int(picked.sum()), np.int64)
        free = out[used:]
        size = rowtext.write_games(
            batch.buf, batch.columns, picked, task.config.keep_headers, free, lengths
        )
        used += size
        records = batch.records[picked].copy()
        records["row"] = np.cumsum(lengths) - lengths
        streams[split] = free[:size].data
        streams[f"{split}.games"] = records.tobytes()
        of_picked = np.repeat(picked, plies)
        streams[f"{split}.phases"] = batch.codes[of_picked].tobytes()
        if task.range.sidecar and task.range.sidecar.has_moves:
            streams[f"{split}.moves"] = batch.moves[of_picked].astype(folders.MOVE).tobytes()
            winners = batch.columns[picked, rowshape.WINNER]
            streams[f"{split}.spans"] = folders.spans_of(plies[picked], winners).tobytes()
        summary[split] = _counts(batch.columns[picked])
    return streams, summary


def _counts(columns: NDArray[np.int64]) -> dict[str, Any]:
    from gristmill.chess.kernels import rowshape

    sides, counts = np.unique(columns[:, rowshape.WINNER], return_counts=True)
    return {
        "games": len(columns),
        "plies": int(columns[:, rowshape.PLIES].sum()),
        "winners": {chr(c): n for c, n in zip(sides.tolist(), counts.tolist(), strict=True)},
    }


def _append(streams: Iterable[tuple[str, Bytes]], written: StreamFiles) -> None:
    """Append the streams of a part; its records get the bytes and moves before added."""
    before, records = dict(written.sizes), dict[str, bytearray]()
    for name, data in streams:
        if name.endswith((".games", ".spans")):
            records.setdefault(name, bytearray()).extend(data)
        else:
            written.write(name, data)
    for name, found in records.items():
        split, _, kind = name.partition(".")
        table = np.frombuffer(found, folders.GAME if kind == "games" else folders.SPAN)
        if kind == "games":
            table["row"] += before[split]
        else:
            table["first"] += before[f"{split}.moves"] // folders.MOVE.itemsize
        written.write(name, table.tobytes())


class _Totals:
    """Counts over all parts."""

    def __init__(self) -> None:
        self.games = self.eligible = self.dropped = 0
        self.split_games = dict.fromkeys(SPLITS, 0)
        self.split_plies = dict.fromkeys(SPLITS, 0)
        self.winners: dict[str, dict[str, int]] = {s: {"W": 0, "B": 0} for s in SPLITS}

    def add(self, part: Mapping[str, Any]) -> None:
        self.games += part["games"]
        self.eligible += part["eligible"]
        for split in SPLITS:
            self.split_games[split] += part[split]["games"]
            self.split_plies[split] += part[split]["plies"]
            for winner, n in part[split]["winners"].items():
                self.winners[split][winner] = self.winners[split].get(winner, 0) + n


def _stats(valid: Path, published: Path, config: GameConfig, totals: _Totals) -> dict[str, Any]:
    games, plies = totals.split_games, totals.split_plies
    stats: dict[str, Any] = {
        "dataset_format": rows.GAME_FORMAT,
        "input_path": str(published_path(valid)),
        "output_dir": str(published_path(published)),
        "schema_move_field": "moves",
        "source_validated_move_alias_supported": ["moves", "moves_uci"],
        "keep_headers": config.keep_headers,
        "runtime_splice_defaults": {
            "min_context": config.min_context,
            "min_target": config.min_target,
        },
        "split_seed": config.seed,
        "train_ratio": config.train_ratio,
        "val_ratio": config.val_ratio,
        "decisive_only": config.games == "decisive",
        "input_games_total": totals.games,
        "input_games_after_filters": totals.eligible,
        "spliceable_games": sum(games.values()),
        "split_games": games,
        "split_plies_total": plies,
        "split_avg_plies": {s: plies[s] / games[s] if games[s] else 0.0 for s in SPLITS},
        "split_winner_counts": totals.winners,
    }
    if config.games != "decisive":
        stats["games"] = config.games
    if config.drop_duplicates:
        stats["dropped_duplicates"] = totals.dropped
    return stats | rule_stats(config)


def build_game_dataset(
    valid_games: Path,
    out: Path,
    config: GameConfig = GameConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    published: Path | None = None,
    progress: Progress = SILENT,
) -> GameSummary:
    """Build a game dataset: rows by split, sidecar and stats.

    Rows may have `moves` or `moves_uci`. A game with moves that are not legal from the start
    position gets the phase `unknown`.

    valid_games: a validated folder, or a JSONL file of valid games.
    out: folder to make; its files are those of docs/formats/chess.md#folders. An empty
        split is a file of 0 bytes.
    config: which games there are, and the split.
    parts: store of finished parts, from which a killed build continues; None for no store.
    published: folder where the dataset will be, for stats.json; `out` by default.
    progress: gets the stage `games`, in bytes of rows; with the shuffle `split` before it.

    Raises BadInput for live bot games, for rows that cannot be read, and for a sidecar of
    other rows. Raises SplitLeakage where the same moves are in two splits.
    """
    valid = valid_file(valid_games)
    files = {split: out / f"{split}.jsonl" for split in SPLITS}
    beside = folders.Sidecar.open(valid.parent, "games")
    for split in SPLITS:
        if beside and beside.has_moves:
            files[f"{split}.moves"] = folders.moves_file(out, split)
            files[f"{split}.spans"] = folders.spans_file(out, split)
        files[f"{split}.games"] = folders.games_file(out, split)
        files[f"{split}.phases"] = folders.phases_file(out, split)
    totals = _Totals()
    with (
        split_tasks(valid, out, config, drop_empty=True, progress=progress) as tasks,
        StreamFiles(files) as written,
        progress.stage("games", unit="bytes", total=valid.stat().st_size) as stage,
    ):
        finished = run_streams(_make, tasks, parts, config.workers, scratch=out)
        for (_, task), (streams, part) in zip(tasks, finished, strict=True):
            _append(streams, written)
            totals.add(part)
            totals.dropped += len(task.repeated)
            stage.advance(task.size)
    if folders.sources_file(valid.parent).exists():
        folders.sources_file(out).write_bytes(folders.sources_file(valid.parent).read_bytes())
    (out / STATS).write_text(json.dumps(_stats(valid, published or out, config, totals), indent=2))
    games = totals.split_games
    folders.write_rows(out, {split: (out / f"{split}.jsonl", games[split]) for split in SPLITS})
    records = [folders.games_file(out, split) for split in SPLITS]
    shared = shared_sequences(out, records, config)
    duplicates = sum(count_duplicates([file]) for file in records)
    contexts = contexts_in_train(out, config) if beside and beside.has_moves else {}
    return _summary(totals, duplicates, shared, contexts)


def _summary(
    totals: _Totals, duplicates: int, shared: int, contexts: Mapping[str, float]
) -> GameSummary:
    files = {STATS: FileNote(payload=False)}
    for split in SPLITS:
        rows_of_split = FileNote(rows=totals.split_games[split])
        files[f"{split}.jsonl"] = rows_of_split
        files[f"{folders.FOLDER}/{split}.games.bin"] = rows_of_split
    return GameSummary(
        files=files,
        input_games=totals.games,
        eligible_games=totals.eligible,
        spliceable_games=sum(totals.split_games.values()),
        games=totals.split_games,
        plies=totals.split_plies,
        duplicate_games=duplicates,
        dropped_duplicates=totals.dropped,
        shared_sequences=shared,
        contexts_in_train=contexts,
    )


@dataclass(frozen=True)
class CacheSummary(Summary):
    """Counts of a cache."""

    games: Mapping[str, int]
    samples: Mapping[str, int]
    phases: Mapping[str, int]
    vocabulary_size: int


def _source(dataset: Path, split: str, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The size and SHA-256 of a split's rows. Raises BadInput where rows.json names another."""
    path = dataset / f"{split}.jsonl"
    if not path.is_file():
        raise BadInput(path, "is missing; build the game dataset first")
    source = {"size_bytes": path.stat().st_size, "sha256": sha256_file(path)}
    if split in recorded and recorded[split]["sha256"] != source["sha256"]:
        raise BadInput(
            path,
            "has changed since its sidecar was written; build the dataset again, or remove "
            f"{folders.FOLDER}/ to have the games replayed",
        )
    return source


def _has_moves(dataset: Path, split: str) -> bool:
    beside = folders.Sidecar.open(dataset, split)
    return beside is not None and beside.has_moves


def _build_split(
    task: tuple[Path, Path, str, Path], config: CacheConfig, store: PartStore | None, stage: Stage
) -> dict[str, Any]:
    """Write the arrays and paths.json of a split; returns the counts of its samples."""
    dataset, out, split, published = task
    counts: dict[str, Any] = {"games": 0, "samples": 0, "phases": [0, 0, 0, 0]}
    tasks = sample_tasks(dataset, split, config)
    names = [*LAYOUT, *[SAMPLE_GAMES] * _has_moves(dataset, split)]
    with StreamFiles({name: out / split / name for name in names}) as written:
        for streams, part in run_streams(make_samples, tasks, store, config.workers, scratch=out):
            for name, data in streams:
                if name in names:
                    written.write(name, data)
            stage.advance(part["games"])
            counts["games"] += part["games"]
            counts["samples"] += part["samples"]
            counts["phases"] = [
                a + b for a, b in zip(counts["phases"], part["phases"], strict=True)
            ]
    paths = [os.path.abspath(published / f"{split}.jsonl")]  # noqa: PTH100 (resolves no link)
    (out / split / CACHE_PATHS).write_text(json.dumps(paths, indent=2))
    return counts


def _split_entry(
    out: Path, split: str, counts: Mapping[str, Any], source: Mapping[str, Any], config: CacheConfig
) -> dict[str, Any]:
    files = {
        name: {
            "rel_path": f"{split}/{name}",
            "size_bytes": (out / split / name).stat().st_size,
            "sha256": sha256_file(out / split / name),
        }
        for name in LAYOUT
    }
    total = sum((out / split / name).stat().st_size for name in LAYOUT)
    return {
        "game_rows_total": counts["games"],
        "sample_rows_total": counts["samples"],
        "total_cache_bytes": total + (out / split / CACHE_PATHS).stat().st_size,
        "files": files,
        "config": config.contract(),
        "source": {"path": f"{split}.jsonl", **source, "rows": counts["games"]},
    }


def _manifest(
    home: Path,
    config: CacheConfig,
    now: datetime,
    entries: Mapping[str, Any],
    counted: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "kind": rows.CACHE_KIND,
        "created_at_utc": now.isoformat(),
        "dataset_dir": os.path.abspath(home),  # noqa: PTH100
        "config": config.contract(),
        "splits": entries,
        "binary_layout": {
            "byte_order": "little",
            "order": "one element a sample, the same sample at the same place in every file",
            "dtypes": dict(LAYOUT),
            "phase_ids": {name: i for i, name in enumerate(rows.PHASES)},
        },
        "game_rows_total": sum(c["games"] for c in counted.values()),
        "sample_rows_total": sum(c["samples"] for c in counted.values()),
        "total_cache_bytes": sum(e["total_cache_bytes"] for e in entries.values()),
    }


def build_splice_cache(
    dataset_dir: Path,
    out: Path,
    config: CacheConfig = CacheConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    published: Path | None = None,
    progress: Progress = SILENT,
) -> CacheSummary:
    """Build the runtime splice cache of a game dataset.

    dataset_dir: folder of the game dataset.
    out: folder to make; its files are those of docs/formats/chess.md#folders.
    config: which samples there are.
    parts: store of finished parts, from which a killed build continues; None for no store.
    published: folder where the cache will be, inside its dataset's folder, for the absolute
        paths in paths.json; by default they are those of `dataset_dir`.
    progress: gets the stage `samples`, in games; without a sidecar there is no total.

    Raises BadInput where a split's rows are missing, cannot be read, or are not those that
    the sidecar was built from.
    """
    dataset = dataset_dir.resolve()
    home = published.parent if published else dataset
    recorded = folders.read_rows(dataset)
    sources = {split: _source(dataset, split, recorded) for split in SPLITS}
    out.mkdir()
    notes: dict[str, FileNote] = {CACHE_MANIFEST: FileNote(payload=False)}
    entries: dict[str, Any] = {}
    counted: dict[str, dict[str, Any]] = {}
    games = sum(recorded[split]["rows"] for split in SPLITS) if recorded else None
    with progress.stage("samples", unit="games", total=games) as stage:
        for split in SPLITS:
            task = (dataset, out, split, home)
            counted[split] = counts = _build_split(task, config, parts, stage)
            entries[split] = _split_entry(out, split, counts, sources[split], config)
            notes |= {f"{split}/{name}": FileNote(rows=counts["samples"]) for name in LAYOUT}
            notes[f"{split}/{CACHE_PATHS}"] = FileNote(payload=False)
    now = datetime.now(UTC)
    manifest = _manifest(home, config, now, entries, counted)
    (out / CACHE_MANIFEST).write_text(json.dumps(manifest, indent=2))
    size = 0
    if config.vocabulary:
        size = write_vocabulary(dataset, out, config, counted, now, home)
        notes["vocab_rows_meta.json"] = FileNote(payload=False)
    phases = np.sum([c["phases"] for c in counted.values()], axis=0).tolist()
    return CacheSummary(
        files=notes,
        games={split: c["games"] for split, c in counted.items()},
        samples={split: c["samples"] for split, c in counted.items()},
        phases=dict(zip(rows.PHASES, phases, strict=True)),
        vocabulary_size=size,
    )
