"""A game dataset to its runtime splice cache: parallel arrays, one element a sample.

Spec section 3. With the dataset's sidecar the arrays are gathered from phase
codes and row offsets, without a look at the moves; else the games are replayed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess import rows, sidecar, splice
from gristmill.chess.blocks import RowShare, read_block, shares
from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.sections import Made, Sinks, clear_scratch, grind, scratch
from gristmill.chess.vocabulary import write_vocabulary
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.parts import PartStore, sha256_file

# Raised when the bytes that this builder makes change.
CODE_VERSION = "1"
FOLDER, MANIFEST, PATHS = "runtime_splice_cache", "manifest.json", "paths.json"
# File name -> dtype, in the order of the manifest.
LAYOUT = {
    "path_ids.u32.bin": "<u4",
    "offsets.u64.bin": "<u8",
    "splice_indices.u32.bin": "<u4",
    "sample_phase_ids.u8.bin": "|u1",
}
_SHARE_BYTES = 4 << 20


@dataclass(frozen=True)
class CacheSummary(Summary):
    """Counts of a cache by split, and samples by phase over all splits."""

    games: Mapping[str, int]
    samples: Mapping[str, int]
    phases: Mapping[str, int]
    vocabulary_size: int


@dataclass(frozen=True)
class _Task:
    """Games of one split: lines of its file, or (sidecar, cap 0) a range of records."""

    split: str
    share: RowShare
    games: int
    config: CacheConfig


def _arrays(
    row: NDArray[np.uint64],
    plies: NDArray[np.int64],
    codes: NDArray[np.uint8],
    kept: NDArray[np.int64],
    indices: NDArray[np.int64],
) -> Made:
    begins = np.cumsum(plies) - plies
    phases = codes[np.repeat(begins, kept) + indices] & 3
    sections = {
        "path_ids.u32.bin": bytes(4 * len(indices)),
        "offsets.u64.bin": np.repeat(row, kept).astype("<u8").tobytes(),
        "splice_indices.u32.bin": indices.astype("<u4").tobytes(),
        "sample_phase_ids.u8.bin": phases.tobytes(),
    }
    summary = {
        "games": len(row),
        "samples": len(indices),
        "phases": np.bincount(phases, minlength=4).tolist(),
    }
    return sections, summary


def _make(task: _Task) -> Made:
    config, share = task.config, task.share
    if task.games >= 0 and share.sidecar:
        records = share.sidecar.records(share.first, task.games)
        plies = records["plies"].astype(np.int64)
        codes = share.sidecar.phases(share.ply, int(plies.sum()))
        kept = splice.counts(plies, config.min_context, config.min_target)
        return _arrays(records["row"], plies, codes, kept, splice.ranges(kept, config.min_context))
    block = read_block(share)
    plies = block.records["plies"].astype(np.int64)
    kept, indices = splice.capped(
        splice.counts(plies, config.min_context, config.min_target),
        config.min_context,
        config.max_samples_per_game,
        block.ids() if config.max_samples_per_game else [""] * len(plies),
        config.seed,
        splice.runtime_order,
    )
    return _arrays(block.records["row"], plies, block.codes, kept, indices)


def _tasks(
    dataset: Path, split: str, config: CacheConfig, replay: bool = False
) -> Iterator[tuple[str, _Task]]:
    """One split's tasks; `replay` leaves the sidecar aside."""
    path = dataset / f"{split}.jsonl"
    beside = None if replay else sidecar.Sidecar.open(dataset, split)
    if beside and not config.max_samples_per_game:
        for first, ply, records in beside.blocks(config.share_games):
            share = RowShare(path, 0, 0, beside, first, ply)
            yield f"{split}_{first:012d}", _Task(split, share, len(records), config)
        return
    for share in shares(path, _SHARE_BYTES, beside):
        yield f"{split}_{share.start:014d}", _Task(split, share, -1, config)


def sample_parts(
    dataset: Path, split: str, config: CacheConfig, replay: bool = False
) -> Iterator[Made]:
    """A split's samples in order, made anew: the arrays of LAYOUT as bytes, part by part.

    With `replay` every game is replayed from its moves, sidecar or not.
    """
    for _, task in _tasks(dataset, split, config, replay):
        yield _make(task)


def sample_arrays(
    dataset: Path, split: str, config: CacheConfig
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint8]]:
    """Offsets, splice indices and phase ids of all samples of a split, in memory."""
    names = list(LAYOUT)[1:]
    pieces: dict[str, list[bytes]] = {name: [] for name in names}
    for sections, _ in sample_parts(dataset, split, config):
        for name in names:
            pieces[name].append(bytes(sections[name]))
    offsets, indices, phases = (
        np.frombuffer(b"".join(pieces[name]), LAYOUT[name]) for name in names
    )
    return offsets, indices, phases


def _source(dataset: Path, split: str, noted: Mapping[str, Any]) -> dict[str, Any]:
    """The split file's size and sha256, which must be those that the sidecar was made with."""
    path = dataset / f"{split}.jsonl"
    if not path.is_file():
        raise BadInput(path, "is missing; build the game dataset first")
    found = {"size_bytes": path.stat().st_size, "sha256": sha256_file(path)}
    if split in noted and noted[split]["sha256"] != found["sha256"]:
        raise BadInput(
            path,
            "has changed since its sidecar was written; build the dataset again, or remove "
            f"{sidecar.FOLDER}/ to have the games replayed",
        )
    return found


def _build_split(
    task: tuple[Path, Path, str, Path], config: CacheConfig, store: PartStore | None
) -> dict[str, Any]:
    """Write one split's files; returns games, samples and phases."""
    dataset, out, split, published = task
    counts: dict[str, Any] = {"games": 0, "samples": 0, "phases": [0, 0, 0, 0]}
    with Sinks({name: out / split / name for name in LAYOUT}) as sinks:
        for pieces, part in grind(_make, _tasks(dataset, split, config), config.workers, store):
            for name, piece in pieces:
                sinks.write(name, piece)
            counts["games"] += part["games"]
            counts["samples"] += part["samples"]
            counts["phases"] = [
                a + b for a, b in zip(counts["phases"], part["phases"], strict=True)
            ]
    named = [os.path.abspath(published / f"{split}.jsonl")]  # noqa: PTH100 (no look at the disk)
    (out / split / PATHS).write_text(json.dumps(named, indent=2))
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
        "total_cache_bytes": total + (out / split / PATHS).stat().st_size,
        "files": files,
        "config": config.contract(),
        "source": {"path": f"{split}.jsonl", **source, "rows": counts["games"]},
    }


def build_splice_cache(
    dataset_dir: Path,
    out: Path,
    config: CacheConfig = CacheConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    published: Path | None = None,
) -> CacheSummary:
    """Build the runtime splice cache of a game dataset into `out`.

    Writes for each split the four arrays of spec 3.1 (little-endian, no header;
    of length 0 for an empty split) and paths.json, manifest.json (3.4, with the
    source's size and sha256, row counts and layout) and vocab_rows_meta.json
    (3.5). published: where the cache will stand, inside its dataset's folder, for
    the absolute paths in paths.json; by default that is where the dataset is now.

    Raises BadInput where a split file is missing, cannot be read, or is not the
    one that its sidecar was made with.
    """
    dataset = dataset_dir.resolve()
    home = published.parent if published else dataset
    noted = sidecar.read_rows(dataset)
    sources = {split: _source(dataset, split, noted) for split in SPLITS}
    out.mkdir()
    store = scratch(out, parts, config.workers)
    notes: dict[str, FileNote] = {MANIFEST: FileNote(payload=False)}
    entries: dict[str, Any] = {}
    counted: dict[str, dict[str, Any]] = {}
    for split in SPLITS:
        counted[split] = counts = _build_split((dataset, out, split, home), config, store)
        entries[split] = _split_entry(out, split, counts, sources[split], config)
        notes |= {f"{split}/{name}": FileNote(rows=counts["samples"]) for name in LAYOUT}
        notes[f"{split}/{PATHS}"] = FileNote(payload=False)
    clear_scratch(out)
    now = datetime.now(UTC)
    manifest = {
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
    (out / MANIFEST).write_text(json.dumps(manifest, indent=2))
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
