"""Validated games to legacy rows: one row for each sample.

Source: docs/formats/chess.md#legacy-rows
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.builders.splits import (
    SplitTask,
    eligible,
    rule_stats,
    shared_sequences,
    split_tasks,
)
from gristmill.chess.config import SPLITS, SpliceConfig
from gristmill.chess.format import folders, rows
from gristmill.chess.format.folders import STATS, count_duplicates, valid_file
from gristmill.chess.read import samples as splice_points
from gristmill.chess.read.row_batches import RowBatch, read_batch
from gristmill.contract import FileNote, Summary
from gristmill.run.parts import Bytes, Made, PartStore, StreamFiles, run_streams
from gristmill.run.progress import SILENT, Progress

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


def _id_keys(batch: RowBatch, picked: NDArray[np.bool_]) -> bytes:
    """Game records with a hash of the id as move key, from which distinct ids are counted."""
    from gristmill.chess.kernels import rowshape

    text, sha256 = batch.buf.data, hashlib.sha256
    spans = batch.columns[picked][:, [rowshape.ID0, rowshape.ID1]].tolist()
    records = np.zeros(len(spans), folders.GAME)
    digests = b"".join([sha256(text[a:b]).digest()[:8] for a, b in spans])
    records["move_key"] = np.frombuffer(digests, ">u8")
    return records.tobytes()


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


def _make(task: SplitTask[SpliceConfig]) -> Made:
    """Legacy rows, ids and move keys of a byte range by split, and their counts."""
    from gristmill.chess.kernels import rowshape, splicetext

    config, batch = task.config, read_batch(task.range)
    columns, codes = batch.columns, batch.codes
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
        streams[f"{split}.ids"] = _id_keys(batch, picked)
        streams[f"{split}.moves"] = batch.records[picked].tobytes()
        summary[split] = _counts(samples, picked, codes)
    return streams, summary


def _counts(
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


class _Totals:
    """Counts over all parts."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter(games=0, eligible=0, rows=0)
        self.splits: dict[str, Any] = {
            split: {"samples": 0, "phases": Counter(), "left": Counter()} for split in SPLITS
        }

    def add(self, part: Mapping[str, Any]) -> None:
        self.rows.update(games=part["games"], eligible=part["eligible"])
        for split, totals in self.splits.items():
            counts = part[split]
            self.rows["rows"] += counts["rows"]
            totals["samples"] += counts["samples"]
            totals["phases"].update(counts["phases"])
            totals["left"].update(counts["left"])


def _stats(
    config: SpliceConfig, published: Path, totals: Mapping[str, int], splits: Mapping[str, Any]
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
        "spliceable_games": totals["rows"],
        "split_games": {split: splits[split]["games"] for split in SPLITS},
        "split_games_with_samples_written": {split: splits[split]["games"] for split in SPLITS},
        "split_samples": {split: splits[split]["samples"] for split in SPLITS},
        "split_phase_counts": {split: dict(splits[split]["phases"]) for split in SPLITS},
        "split_remaining_bucket_counts": {split: dict(splits[split]["left"]) for split in SPLITS},
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
    totals = _Totals()
    files = {split: out / f"{split}.jsonl" for split in SPLITS}
    for kind in ("ids", "moves"):
        files |= {f"{split}.{kind}": out / f".{kind}.{split}" for split in SPLITS}
    with (
        split_tasks(valid, out, config, drop_empty=False, progress=progress) as tasks,
        StreamFiles(files) as written,
        progress.stage("splices", unit="bytes", total=valid.stat().st_size) as stage,
    ):
        finished = run_streams(_make, tasks, parts, config.workers, scratch=out)
        for (_, task), (streams, part) in zip(tasks, finished, strict=True):
            for name, data in streams:
                written.write(name, data)
            totals.add(part)
            stage.advance(task.size)
    shared_sequences(out, [files[f"{split}.moves"] for split in SPLITS], config)
    for split in SPLITS:
        ids = files[f"{split}.ids"]
        records = ids.stat().st_size // folders.GAME.itemsize
        totals.splits[split]["games"] = records - count_duplicates([ids])
        ids.unlink()
        files[f"{split}.moves"].unlink()
    stats = _stats(config, published or out, totals.rows, totals.splits)
    (out / STATS).write_text(json.dumps(stats, indent=2))
    return _summary(stats)


def _summary(stats: Mapping[str, Any]) -> SpliceSummary:
    samples = stats["split_samples"]
    rows_by_file = {f"{split}.jsonl": FileNote(rows=samples[split]) for split in SPLITS}
    return SpliceSummary(
        files={STATS: FileNote(payload=False), **rows_by_file},
        input_games=stats["input_games_total"],
        eligible_games=stats["input_games_after_filters"],
        spliceable_games=stats["spliceable_games"],
        games=stats["split_games"],
        samples=samples,
    )
