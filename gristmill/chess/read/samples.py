"""The samples of a game dataset as four parallel arrays, made in parts.

With the sidecar of the dataset they come from phase codes and row offsets alone; without it the
games are replayed. Source: docs/formats/chess.md#splice-points
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import CacheConfig
from gristmill.chess.format import sidecar
from gristmill.chess.format.names import (
    LAYOUT,
    OFFSETS,
    PATH_IDS,
    SAMPLE_GAMES,
    SAMPLE_PHASES,
    SPLICE_INDICES,
    split_file,
)
from gristmill.chess.read import splice_points
from gristmill.chess.read.row_batches import RowRange, read_batch, row_ranges
from gristmill.run.parts import Made

_RANGE_BYTES = 4 << 20


@dataclass(frozen=True)
class SampleTask:
    """One part of a split's samples.

    byte_range: lines of the split's file; with `games` it only names the sidecar and
        the first game and ply.
    games: number of records to take from the sidecar, -1 to read the lines.
    """

    split: str
    byte_range: RowRange
    games: int
    config: CacheConfig


def _arrays(
    first: int,
    row: NDArray[np.integer[Any]],
    plies: NDArray[np.int64],
    codes: NDArray[np.uint8],
    kept: NDArray[np.int64],
    indices: NDArray[np.int64],
) -> Made:
    starts = np.cumsum(plies) - plies
    phases = codes[np.repeat(starts, kept) + indices] & 3
    arrays = {
        PATH_IDS: bytes(4 * len(indices)),
        OFFSETS: np.repeat(row, kept).astype("<u8").tobytes(),
        SPLICE_INDICES: indices.astype("<u4").tobytes(),
        SAMPLE_PHASES: phases.tobytes(),
    }
    if first >= 0:
        games = np.arange(first, first + len(row))
        arrays[SAMPLE_GAMES] = np.repeat(games, kept).astype("<u4").tobytes()
    summary = {
        "games": len(row),
        "samples": len(indices),
        "phases": np.bincount(phases, minlength=4).tolist(),
    }
    return arrays, summary


def make_samples(task: SampleTask) -> Made:
    """Make one part: the bytes of each array of LAYOUT, and its counts.

    With a sidecar also SAMPLE_GAMES: without one the games before the part are not known.
    Raises BadInput where a row cannot be read or the sidecar does not agree with it.
    """
    config, byte_range = task.config, task.byte_range
    if task.games >= 0 and byte_range.sidecar:
        records = byte_range.sidecar.records(byte_range.first, task.games)
        plies = records["plies"].astype(np.int64)
        codes = byte_range.sidecar.phases(byte_range.ply, int(plies.sum()))
        kept = splice_points.counts(plies, config.min_context, config.min_target)
        indices = splice_points.ranges(kept, config.min_context)
        return _arrays(byte_range.first, records["row"], plies, codes, kept, indices)
    from gristmill.chess.kernels import rowshape

    batch = read_batch(byte_range)
    plies = batch.columns[:, rowshape.N].copy()
    kept, indices = splice_points.capped(
        splice_points.counts(plies, config.min_context, config.min_target),
        config.min_context,
        config.max_samples_per_game,
        batch.ids() if config.max_samples_per_game else [""] * len(plies),
        config.seed,
        splice_points.runtime_seed,
    )
    rows = batch.columns[:, rowshape.LINE0] + byte_range.start
    return _arrays(byte_range.first, rows, plies, batch.codes, kept, indices)


def sample_tasks(
    dataset: Path, split: str, config: CacheConfig
) -> Iterator[tuple[str, SampleTask]]:
    """The parts of a split's samples in order, each with its name."""
    path = split_file(dataset, split)
    recorded = sidecar.Sidecar.open(dataset, split)
    if recorded and not config.max_samples_per_game:
        for first, ply, records in recorded.batches(config.share_games):
            byte_range = RowRange(path, 0, 0, recorded, first, ply)
            yield f"{split}_{first:012d}", SampleTask(split, byte_range, len(records), config)
        return
    for byte_range in row_ranges(path, _RANGE_BYTES, recorded):
        yield f"{split}_{byte_range.start:014d}", SampleTask(split, byte_range, -1, config)


def sample_parts(dataset: Path, split: str, config: CacheConfig) -> Iterator[Made]:
    """Make a split's samples in order, part by part: the arrays of LAYOUT as bytes, and counts."""
    for _, task in sample_tasks(dataset, split, config):
        yield make_samples(task)


class SampleArrays(NamedTuple):
    """Samples of a split, each array [samples]: offset of the row, splice index, phase id.

    games: number of the row, int [samples]; None where it is not known.
    """

    offsets: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    phases: NDArray[np.uint8]
    games: NDArray[np.uint32] | None


def sample_arrays(dataset: Path, split: str, config: CacheConfig) -> SampleArrays:
    """All samples of a split in memory."""
    parts: dict[str, list[bytes]] = {}
    for arrays, _ in sample_parts(dataset, split, config):
        for name, data in arrays.items():
            parts.setdefault(name, []).append(bytes(data))
    offsets, indices, phases, games = (
        np.frombuffer(b"".join(parts.get(name, [])), dtype)
        for name, dtype in (*list(LAYOUT.items())[1:], (SAMPLE_GAMES, "<u4"))
    )
    return SampleArrays(offsets, indices, phases, games if len(games) == len(offsets) else None)
