"""The samples of a game dataset as parallel arrays, made share by share.

Rules: docs/formats/chess.md (#cache-arrays, #splice-points, #runtime-cap).

With the dataset's sidecar they are gathered from phase codes and row offsets,
without a look at the moves; else the games are replayed. Used by the cache
builder, by the reader without a cache, and by the laws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import CacheConfig
from gristmill.chess.format import sidecar, splice_points
from gristmill.chess.read.row_batches import RowShare, read_block, shares
from gristmill.run.sections import Made

# File name -> dtype, in the order of the manifest.
LAYOUT = {
    "path_ids.u32.bin": "<u4",
    "offsets.u64.bin": "<u8",
    "splice_indices.u32.bin": "<u4",
    "sample_phase_ids.u8.bin": "|u1",
}
_SHARE_BYTES = 4 << 20


@dataclass(frozen=True)
class SampleTask:
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


def make_samples(task: SampleTask) -> Made:
    config, share = task.config, task.share
    if task.games >= 0 and share.sidecar:
        records = share.sidecar.records(share.first, task.games)
        plies = records["plies"].astype(np.int64)
        codes = share.sidecar.phases(share.ply, int(plies.sum()))
        kept = splice_points.counts(plies, config.min_context, config.min_target)
        return _arrays(
            records["row"], plies, codes, kept, splice_points.ranges(kept, config.min_context)
        )
    block = read_block(share)
    plies = block.records["plies"].astype(np.int64)
    kept, indices = splice_points.capped(
        splice_points.counts(plies, config.min_context, config.min_target),
        config.min_context,
        config.max_samples_per_game,
        block.ids() if config.max_samples_per_game else [""] * len(plies),
        config.seed,
        splice_points.runtime_order,
    )
    return _arrays(block.records["row"], plies, block.codes, kept, indices)


def sample_tasks(
    dataset: Path, split: str, config: CacheConfig, replay: bool = False
) -> Iterator[tuple[str, SampleTask]]:
    """One split's tasks; `replay` leaves the sidecar aside."""
    path = dataset / f"{split}.jsonl"
    beside = None if replay else sidecar.Sidecar.open(dataset, split)
    if beside and not config.max_samples_per_game:
        for first, ply, records in beside.blocks(config.share_games):
            share = RowShare(path, 0, 0, beside, first, ply)
            yield f"{split}_{first:012d}", SampleTask(split, share, len(records), config)
        return
    for share in shares(path, _SHARE_BYTES, beside):
        yield f"{split}_{share.start:014d}", SampleTask(split, share, -1, config)


def sample_parts(
    dataset: Path, split: str, config: CacheConfig, replay: bool = False
) -> Iterator[Made]:
    """A split's samples in order, made anew: the arrays of LAYOUT as bytes, part by part.

    With `replay` every game is replayed from its moves, sidecar or not.
    """
    for _, task in sample_tasks(dataset, split, config, replay):
        yield make_samples(task)


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
