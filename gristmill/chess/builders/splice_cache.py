"""A game dataset to its runtime splice cache: parallel arrays, one element a sample.

Source: docs/formats/chess.md#splice-cache
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.names import CACHE_MANIFEST, CACHE_PATHS, LAYOUT, SAMPLE_GAMES
from gristmill.chess.read.move_vocabulary import write_vocabulary
from gristmill.chess.read.samples import make_samples, sample_tasks
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import sha256_file
from gristmill.run.parts import PartStore, StreamFiles, run_streams
from gristmill.run.progress import SILENT, Progress, Stage


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
            f"{sidecar.FOLDER}/ to have the games replayed",
        )
    return source


def _has_moves(dataset: Path, split: str) -> bool:
    beside = sidecar.Sidecar.open(dataset, split)
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
    parts: store of finished parts, from which a killed build goes on; None for no store.
    published: folder where the cache will be, inside its dataset's folder, for the absolute
        paths in paths.json; by default they are those of `dataset_dir`.
    progress: gets the stage `samples`, in games; without a sidecar there is no total.

    Raises BadInput where a split's rows are missing, cannot be read, or are not those that
    the sidecar was built from.
    """
    dataset = dataset_dir.resolve()
    home = published.parent if published else dataset
    recorded = sidecar.read_rows(dataset)
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
