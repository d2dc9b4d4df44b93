"""Validated games to legacy sample rows: every splice of a game written out.

Rules: docs/formats/chess.md (#legacy-rows, #legacy-cap, #legacy-stats).

The compatibility path; a game dataset with its cache holds the same samples in
a fraction of the bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.build.splits import SplitTask, shared_sequences, split_tasks, taken
from gristmill.chess.config import SPLITS, SpliceConfig
from gristmill.chess.format import rows, sidecar, splice_points
from gristmill.chess.format.move_keys import count_duplicates
from gristmill.chess.format.names import STATS, valid_file
from gristmill.chess.read.row_batches import RowBatch, read_batch
from gristmill.contract import FileNote, Summary
from gristmill.run.part_streams import Bytes, Made, StreamFiles, run_streams
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress

_BATCH = 256  # of the original code's stats: docs/formats/chess.md#legacy-stats


@dataclass(frozen=True)
class SpliceSummary(Summary):
    """Counts of a legacy splice dataset, by split."""

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
    """Sidecar-like records that carry a hash of the game id, to count distinct ids by."""
    from gristmill.chess.kernels import rowshape

    text, sha256 = batch.buf.data, hashlib.sha256
    spans = batch.columns[picked][:, [rowshape.ID0, rowshape.ID1]].tolist()
    records = np.zeros(len(spans), sidecar.GAME)
    digests = b"".join([sha256(text[a:b]).digest()[:8] for a, b in spans])
    records["move_key"] = np.frombuffer(digests, ">u8")
    return records.tobytes()


def _make(task: SplitTask[SpliceConfig]) -> Made:
    from gristmill.chess.kernels import rowshape, splicetext

    config, batch = task.config, read_batch(task.range)
    found, codes = batch.columns, batch.codes
    passes, _ = taken(batch, config)
    places = task.places(batch)
    n = found[:, rowshape.N].copy()
    samples = splice_points.counts(n, config.min_context, config.min_target)
    samples[places > 2] = 0
    cap = config.max_samples_per_game
    kept, indices = splice_points.capped(
        samples,
        config.min_context,
        cap,
        batch.ids() if cap else [""] * len(n),
        config.seed,
        splice_points.legacy_order,
    )
    begins = np.cumsum(n) - n
    owner = np.repeat(np.arange(len(n)), kept)
    # A context of i + 1 moves and a target: at most 13 bytes a move.
    ids = found[:, rowshape.ID1] - found[:, rowshape.ID0] + splicetext.FIXED_BYTES
    bound = int((ids[owner] + 13 * (indices + config.k + 3)).sum())
    # Never read before it is written, and its untouched end costs nothing.
    out = np.empty(bound + 64, np.uint8)
    used = 0
    scratch_places = np.zeros(int(n.max(initial=0)) + 2, np.int64)
    streams: dict[str, Bytes] = {}
    summary: dict[str, Any] = {"games": len(n), "eligible": int(passes.sum())}
    for number, split in enumerate(SPLITS):
        picked = places == number
        room = out[used:]
        size = splicetext.write_splices(
            batch.buf, found, picked, kept, indices, begins, codes, config.k, room, scratch_places
        )
        streams[split] = room[:size].data
        used += size
        streams[f"{split}.ids"] = _id_keys(batch, picked)
        streams[f"{split}.moves"] = batch.records[picked].tobytes()
        mine = picked[owner]
        left = n[owner][mine] - indices[mine] - 1
        summary[split] = {
            "rows": int(picked.sum()),
            "samples": int(mine.sum()),
            "phases": _first_met(codes[(begins[owner] + indices)[mine]] & 3, rows.PHASES),
            "left": _first_met(np.where(left <= 10, 0, np.where(left <= 20, 1, 2)), rows.REMAINING),
        }
    return streams, summary


def _stats(
    config: SpliceConfig, published: Path, totals: Mapping[str, int], splits: Mapping[str, Any]
) -> dict[str, Any]:
    params: dict[str, Any] = {
        "k": config.k,
        "min_context": config.min_context,
        "min_target": config.min_target,
        "max_samples_per_game": config.max_samples_per_game,
        "decisive_only": not config.allow_draws,
        "workers": 1,
        "batch_size": _BATCH,
        "phase_labels": True,
        "allow_live_bot_games": config.allow_live_bot_games,
    }
    if config.split != "shuffle":
        params |= {"split_rule": "move_key", "seed": config.seed}
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
    """Build the legacy splice dataset of a validated folder (or JSONL file) into `out`.

    Writes {train,val,test}.jsonl (docs/formats/chess.md#legacy-rows; an empty split: 0 bytes) and
    stats.json (#legacy-stats). published: where the folder will stand, for stats.json.
    parts: store of finished parts, where a killed build goes on.
    progress: gets the stage "splices", in bytes of rows; before it "deal" for
    split="shuffle".

    Raises BadInput and SplitLeakage as `build_game_dataset` does.
    """
    valid = valid_file(valid_games)
    totals: Counter[str] = Counter(games=0, eligible=0, rows=0)
    splits: dict[str, Any] = {
        split: {"samples": 0, "phases": Counter(), "left": Counter()} for split in SPLITS
    }
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
            totals.update(games=part["games"], eligible=part["eligible"])
            for split in SPLITS:
                totals["rows"] += part[split]["rows"]
                splits[split]["samples"] += part[split]["samples"]
                splits[split]["phases"].update(part[split]["phases"])
                splits[split]["left"].update(part[split]["left"])
            stage.advance(task.size)
    shared_sequences(out, [files[f"{split}.moves"] for split in SPLITS], config)
    for split in SPLITS:
        ids = files[f"{split}.ids"]
        splits[split]["games"] = ids.stat().st_size // sidecar.GAME.itemsize - count_duplicates(
            [ids]
        )
        ids.unlink()
        files[f"{split}.moves"].unlink()
    stats = _stats(config, published or out, totals, splits)
    (out / STATS).write_text(json.dumps(stats, indent=2))
    notes = {f"{s}.jsonl": FileNote(rows=splits[s]["samples"]) for s in SPLITS}
    return SpliceSummary(
        files={STATS: FileNote(payload=False), **notes},
        input_games=totals["games"],
        eligible_games=totals["eligible"],
        spliceable_games=totals["rows"],
        games=stats["split_games"],
        samples=stats["split_samples"],
    )
