"""Validated games to a game dataset with its runtime splice cache, and to legacy rows.

A dataset has one compact row a game, three splits, stats and a sidecar. Packed moves are written
where the validated games have them, so that months which were validated before keep their bytes.
A cache has parallel arrays, one element a sample, in a folder of its dataset. The legacy form has
a row for each sample. Source: docs/formats/chess.md#game-dataset,
docs/formats/chess.md#splice-cache and docs/formats/chess.md#legacy-rows
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
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
from gristmill.chess.config import SPLITS, CacheConfig, GameConfig, SpliceConfig
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
from gristmill.chess.read import samples as splice_points
from gristmill.chess.read.row_batches import RowBatch, read_batch, write_vocabulary
from gristmill.chess.read.samples import make_samples, sample_tasks
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import kept, sha256_file
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


def _make_games(task: SplitTask[GameConfig]) -> Made:
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
        columns = batch.columns[picked]
        sides, counts = np.unique(columns[:, rowshape.WINNER], return_counts=True)
        summary[split] = {
            "games": len(columns),
            "plies": int(columns[:, rowshape.PLIES].sum()),
            "winners": {chr(c): n for c, n in zip(sides.tolist(), counts.tolist(), strict=True)},
        }
    return streams, summary


def append_part(streams: Iterable[tuple[str, Bytes]], written: StreamFiles) -> None:
    """Append the streams of a part; its records get the bytes and moves before added.

    Records of the set `rows` are in `rows.games` and `rows.spans`, which name places in the streams
    `rows` and `rows.moves`.
    """
    before, records = written.sizes, dict[str, bytearray]()
    for name, data in streams:
        if name.endswith((".games", ".spans")):
            records.setdefault(name, bytearray()).extend(data)
        else:
            written.write(name, data)
    for name, found in records.items():
        of, _, kind = name.partition(".")
        table = np.frombuffer(found, folders.GAME if kind == "games" else folders.SPAN)
        if kind == "games":
            table["row"] += before[of]
        else:
            table["first"] += before[f"{of}.moves"] // folders.MOVE.itemsize
        written.write(name, table.tobytes())


def _add(totals: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add the counts of a part to those of the parts before, by name."""
    for name, found in part.items():
        if isinstance(found, Mapping):
            _add(totals.setdefault(name, {}), found)
        else:
            totals[name] = totals.get(name, 0) + found


def _stats_of_games(
    valid: Path, published: Path, config: GameConfig, totals: Mapping[str, Any]
) -> dict[str, Any]:
    games, plies = ({s: totals[s][name] for s in SPLITS} for name in ("games", "plies"))
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
        "input_games_total": totals["games"],
        "input_games_after_filters": totals["eligible"],
        "spliceable_games": sum(games.values()),
        "split_games": games,
        "split_plies_total": plies,
        "split_avg_plies": {s: plies[s] / games[s] if games[s] else 0.0 for s in SPLITS},
        "split_winner_counts": {split: totals[split]["winners"] for split in SPLITS},
    }
    if config.games != "decisive":
        stats["games"] = config.games
    if config.drop_duplicates:
        stats["dropped_duplicates"] = totals["dropped"]
    return stats | rule_stats(config)


def _files_of(out: Path, has_moves: bool) -> dict[str, Path]:
    """The file of each stream of a dataset; records come behind what they name."""
    files = {split: out / f"{split}.jsonl" for split in SPLITS}
    for split in SPLITS:
        if has_moves:
            files[f"{split}.moves"] = folders.moves_file(out, split)
            files[f"{split}.spans"] = folders.spans_file(out, split)
        files[f"{split}.games"] = folders.games_file(out, split)
        files[f"{split}.phases"] = folders.phases_file(out, split)
    return files


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
    beside = folders.Sidecar.open(valid.parent, "games")
    files = _files_of(out, bool(beside and beside.has_moves))
    totals: dict[str, Any] = {"games": 0, "eligible": 0, "dropped": 0}
    totals |= {s: {"games": 0, "plies": 0, "winners": {"W": 0, "B": 0}} for s in SPLITS}
    with (
        split_tasks(valid, out, config, drop_empty=True, progress=progress) as tasks,
        StreamFiles(files) as written,
        progress.stage("games", unit="bytes", total=valid.stat().st_size) as stage,
    ):
        finished = run_streams(_make_games, tasks, parts, config.workers, scratch=out)
        for (_, task), (streams, part) in zip(tasks, finished, strict=True):
            append_part(streams, written)
            _add(totals, {**part, "dropped": len(task.repeated)})
            stage.advance(task.size)
    if folders.sources_file(valid.parent).exists():
        folders.sources_file(out).write_bytes(folders.sources_file(valid.parent).read_bytes())
    stats = _stats_of_games(valid, published or out, config, totals)
    (out / STATS).write_text(json.dumps(stats, indent=2))
    games = stats["split_games"]
    notes = written.notes(out, games | {f"{split}.games": n for split, n in games.items()})
    folders.write_rows(out, {split: notes[f"{split}.jsonl"] for split in SPLITS})
    records = [files[f"{split}.games"] for split in SPLITS]
    return GameSummary(
        files={STATS: FileNote(payload=False), **notes},
        input_games=totals["games"],
        eligible_games=totals["eligible"],
        spliceable_games=stats["spliceable_games"],
        games=games,
        plies=stats["split_plies_total"],
        duplicate_games=sum(count_duplicates([file]) for file in records),
        dropped_duplicates=totals["dropped"],
        shared_sequences=shared_sequences(out, records, config),
        contexts_in_train=contexts_in_train(out, config) if beside and beside.has_moves else {},
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
    source = {"size_bytes": path.stat().st_size, "sha256": kept(sha256_file, path)}
    if split in recorded and recorded[split]["sha256"] != source["sha256"]:
        raise BadInput(
            path,
            "has changed since its sidecar was written; build the dataset again, or remove "
            f"{folders.FOLDER}/ to have the games replayed",
        )
    return source


def _build_split(
    dataset: Path,
    out: Path,
    source: Mapping[str, Any],
    home: Path,
    config: CacheConfig,
    store: PartStore | None,
    stage: Stage,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, FileNote]]:
    """Write the folder of a split: its entry in the manifest, its counts, and the notes."""
    split, counts = out.name, {"games": 0, "samples": 0}
    beside = folders.Sidecar.open(dataset, split)
    names = [*LAYOUT, SAMPLE_GAMES] if beside and beside.has_moves else [*LAYOUT]
    tasks = sample_tasks(dataset, split, config)
    with StreamFiles({name: out / name for name in names}) as written:
        for streams, part in run_streams(make_samples, tasks, store, config.workers, scratch=out):
            for name, data in streams:
                if name in names:
                    written.write(name, data)
            stage.advance(part["games"])
            _add(counts, part)
    paths = [os.path.abspath(home / f"{split}.jsonl")]  # noqa: PTH100 (resolves no link)
    (out / CACHE_PATHS).write_text(json.dumps(paths, indent=2))
    notes = written.notes(out.parent, dict.fromkeys(LAYOUT, counts["samples"]))
    arrays = {name: notes[f"{split}/{name}"] for name in LAYOUT}
    total = sum(note.bytes or 0 for note in arrays.values())
    entry = {
        "game_rows_total": counts["games"],
        "sample_rows_total": counts["samples"],
        "total_cache_bytes": total + (out / CACHE_PATHS).stat().st_size,
        "files": {
            name: {"rel_path": f"{split}/{name}", "size_bytes": note.bytes, "sha256": note.sha256}
            for name, note in arrays.items()
        },
        "config": config.contract(),
        "source": {"path": f"{split}.jsonl", **source, "rows": counts["games"]},
    }
    return entry, counts, {**notes, f"{split}/{CACHE_PATHS}": FileNote(payload=False)}


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
    every: dict[str, Any] = {"phases": dict.fromkeys(rows.PHASES, 0)}
    games = sum(recorded[split]["rows"] for split in SPLITS) if recorded else None
    with progress.stage("samples", unit="games", total=games) as stage:
        for split in SPLITS:
            entries[split], counted[split], made = _build_split(
                dataset, out / split, sources[split], home, config, parts, stage
            )
            _add(every, counted[split])
            notes |= made
    now = datetime.now(UTC)
    manifest = _manifest(home, config, now, entries, counted)
    (out / CACHE_MANIFEST).write_text(json.dumps(manifest, indent=2))
    size = 0
    if config.vocabulary:
        size = write_vocabulary(dataset, out, config, counted, now, home)
        notes["vocab_rows_meta.json"] = FileNote(payload=False)
    return CacheSummary(
        files=notes,
        games={split: c["games"] for split, c in counted.items()},
        samples={split: c["samples"] for split, c in counted.items()},
        phases=every["phases"],
        vocabulary_size=size,
    )


# Constant of the original code in stats.json (docs/formats/chess.md#legacy-stats).
_BATCH_SIZE = 256


@dataclass(frozen=True)
class SpliceSummary(Summary):
    """Counts of a legacy splice dataset."""

    input_games: int
    eligible_games: int
    spliceable_games: int
    games: Mapping[str, int]
    samples: Mapping[str, int]


def _first_met(numbers: NDArray[np.integer[Any]], names: tuple[str, ...]) -> dict[str, int]:
    """Counts by name, in the order in which the numbers are first met."""
    values, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    order = np.argsort(first)
    return {names[values[i]]: int(counts[i]) for i in order}


@dataclass(frozen=True)
class _Samples:
    """The samples of a batch: plies and samples of each game, the splice index of each sample."""

    plies: NDArray[np.int64]
    per_game: NDArray[np.int64]
    indices: NDArray[np.int64]

    @cached_property
    def game(self) -> NDArray[np.int64]:
        """The number of each sample's game, int64 [samples]."""
        return np.repeat(np.arange(len(self.plies)), self.per_game)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The plies of the games before each game, int64 [games]."""
        starts: NDArray[np.int64] = np.cumsum(self.plies) - self.plies
        return starts


def _samples(batch: RowBatch, config: SpliceConfig, places: NDArray[np.uint8]) -> _Samples:
    """The samples of the games that are in a split."""
    from gristmill.chess.kernels import rowshape

    plies, cap = batch.columns[:, rowshape.N].copy(), config.max_samples_per_game
    counts = splice_points.counts(plies, config.min_context, config.min_target)
    counts[places >= len(SPLITS)] = 0
    ids = batch.ids() if cap else [""] * len(plies)
    seed_of = splice_points.legacy_seed
    capped = splice_points.capped(counts, config.min_context, cap, ids, config.seed, seed_of)
    return _Samples(plies, *capped)


def _make_splices(task: SplitTask[SpliceConfig]) -> Made:
    """Legacy rows, ids and move keys of a byte range by split, and their counts."""
    from gristmill.chess.kernels import rowshape, splicetext

    config, batch = task.config, read_batch(task.range)
    columns, codes, text, sha256 = batch.columns, batch.codes, batch.buf.data, hashlib.sha256
    accepted, _ = eligible(batch, config)
    places = task.places(batch)
    samples = _samples(batch, config, places)
    # A context of i + 1 moves and a target: at most 13 bytes a move.
    fixed = columns[:, rowshape.ID1] - columns[:, rowshape.ID0] + splicetext.FIXED_BYTES
    bound = int((fixed[samples.game] + 13 * (samples.indices + config.k + 3)).sum())
    # Memory that is never written costs nothing.
    out = np.empty(bound + 64, np.uint8)
    used = 0
    scratch = np.zeros(int(samples.plies.max(initial=0)) + 2, np.int64)
    streams: dict[str, Bytes] = {}
    summary: dict[str, Any] = {"games": len(columns), "eligible": int(accepted.sum())}
    for number, split in enumerate(SPLITS):
        picked = places == number
        free = out[used:]
        size = splicetext.write_splices(
            batch.buf, columns, picked, samples.per_game, samples.indices, samples.starts,
            codes, config.k, free, scratch,
        )  # fmt: skip
        used += size
        streams[split] = free[:size].data
        # Game records with a hash of the id as move key, from which distinct ids are counted.
        spans = columns[picked][:, [rowshape.ID0, rowshape.ID1]].tolist()
        records = np.zeros(len(spans), folders.GAME)
        digests = b"".join([sha256(text[a:b]).digest()[:8] for a, b in spans])
        records["move_key"] = np.frombuffer(digests, ">u8")
        streams[f"{split}.ids"] = records.tobytes()
        streams[f"{split}.moves"] = batch.records[picked].tobytes()
        summary[split] = _counts_of_splices(samples, picked, codes)
    return streams, summary


def _counts_of_splices(
    samples: _Samples, picked: NDArray[np.bool_], codes: NDArray[np.uint8]
) -> dict[str, Any]:
    of_split = picked[samples.game]
    game, index = samples.game[of_split], samples.indices[of_split]
    left = samples.plies[game] - index - 1
    buckets = np.where(left <= 10, 0, np.where(left <= 20, 1, 2))
    return {
        "rows": int(picked.sum()),
        "samples": len(index),
        "phases": _first_met(codes[samples.starts[game] + index] & 3, rows.PHASES),
        "left": _first_met(buckets, rows.REMAINING),
    }


def _stats_of_splices(
    config: SpliceConfig, published: Path, totals: Mapping[str, Any], games: Mapping[str, int]
) -> dict[str, Any]:
    params: dict[str, Any] = {
        "k": config.k,
        "min_context": config.min_context,
        "min_target": config.min_target,
        "max_samples_per_game": config.max_samples_per_game,
        "decisive_only": config.games == "decisive",
        "workers": 1,
        "batch_size": _BATCH_SIZE,
        "phase_labels": True,
        "allow_live_bot_games": config.allow_live_bot_games,
    }
    if config.games != "decisive":
        params["games"] = config.games
    if config.drop_duplicates:
        params["drop_duplicates"] = True
    if config.split != "shuffle":
        params |= {**rule_stats(config), "seed": config.seed}
    return {
        "input_games_total": totals["games"],
        "input_games_after_filters": totals["eligible"],
        "spliceable_games": sum(totals[split]["rows"] for split in SPLITS),
        "split_games": games,
        "split_games_with_samples_written": games,
        "split_samples": {split: totals[split]["samples"] for split in SPLITS},
        "split_phase_counts": {split: totals[split]["phases"] for split in SPLITS},
        "split_remaining_bucket_counts": {split: totals[split]["left"] for split in SPLITS},
        "params": params,
        "outputs": {split: str(published / f"{split}.jsonl") for split in SPLITS},
    }


def build_splice_dataset(
    valid_games: Path,
    out: Path,
    config: SpliceConfig = SpliceConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    published: Path | None = None,
    progress: Progress = SILENT,
) -> SpliceSummary:
    """Build a legacy splice dataset: one row a sample, by split, and stats.

    valid_games: a validated folder, or a JSONL file of valid games.
    out: folder to make; its files are those of docs/formats/chess.md#folders. An empty
        split is a file of 0 bytes.
    config: which games and samples there are, and the split.
    parts: store of finished parts, from which a killed build continues; None for no store.
    published: folder where the dataset will be, for stats.json; `out` by default.
    progress: gets the stage `splices`, in bytes of rows; with the shuffle `split` before it.

    Raises BadInput and SplitLeakage as `build_game_dataset` does.
    """
    valid = valid_file(valid_games)
    totals: dict[str, Any] = {"games": 0, "eligible": 0}
    totals |= {s: {"rows": 0, "samples": 0, "phases": {}, "left": {}} for s in SPLITS}
    files = {split: out / f"{split}.jsonl" for split in SPLITS}
    for kind in ("ids", "moves"):
        files |= {f"{split}.{kind}": out / f".{kind}.{split}" for split in SPLITS}
    with (
        split_tasks(valid, out, config, drop_empty=False, progress=progress) as tasks,
        StreamFiles(files) as written,
        progress.stage("splices", unit="bytes", total=valid.stat().st_size) as stage,
    ):
        finished = run_streams(_make_splices, tasks, parts, config.workers, scratch=out)
        for (_, task), (streams, part) in zip(tasks, finished, strict=True):
            for name, data in streams:
                written.write(name, data)
            _add(totals, part)
            stage.advance(task.size)
    shared_sequences(out, [files[f"{split}.moves"] for split in SPLITS], config)
    games = {}
    for split in SPLITS:
        ids = files[f"{split}.ids"]
        games[split] = totals[split]["rows"] - count_duplicates([ids])
        ids.unlink()
        files[f"{split}.moves"].unlink()
    stats = _stats_of_splices(config, published or out, totals, games)
    (out / STATS).write_text(json.dumps(stats, indent=2))
    samples = stats["split_samples"]
    notes = written.notes(out, samples)
    return SpliceSummary(
        files={
            STATS: FileNote(payload=False),
            **{f"{split}.jsonl": notes[f"{split}.jsonl"] for split in SPLITS},
        },
        input_games=stats["input_games_total"],
        eligible_games=stats["input_games_after_filters"],
        spliceable_games=stats["spliceable_games"],
        games=stats["split_games"],
        samples=samples,
    )
