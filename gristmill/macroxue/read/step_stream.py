"""The rows of a pack in order, in bounded memory. Source: docs/formats/macroxue.md#value-inputs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.metadata_db import Run, read_runs
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, Rows, as_bytes, to_aligned
from gristmill.macroxue.format.shards import open_steps, refuse_foreign_rows, step_files

BATCH_ROWS = 1 << 17
"""Rows that are read together: 6 MB, so that the cost of a system call does not count."""


@dataclass(frozen=True)
class StepFile:
    """One steps file, with the rows [first, first + rows) of the pack."""

    path: Path
    first: int
    rows: int
    dtype: np.dtype[Any]
    offset: int


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a pack.

    start: number of the first row in the pack.
    rows: step rows [N].
    first_run: index in `StepStream.runs` of the run of the first row.
    counts: int64 [R], number of rows of that run, of the next one, and so on.
    """

    start: int
    rows: Rows
    first_run: int
    counts: npt.NDArray[np.int64]

    def run_starts(self) -> npt.NDArray[np.int64]:
        """The first row of each run in `rows` as int64 [R], for a batch of whole runs."""
        return np.cumsum(self.counts) - self.counts


class StepStream:
    """A pack or pool that is read from the first row to the last.

    Raises BadInput where a file is not a steps file or is empty, and where the database has no
    runs. Reading checks that the rows stand run by run in the order of `runs`, as many as it
    says; BadInput then names pack and run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[StepFile] = []
        self.rows = 0
        for path in step_files(folder):
            refuse_foreign_rows(path)
            rows = open_steps(path)
            if len(rows) == 0:
                raise BadInput(
                    path, "holds no rows: leave an empty pack out, or remove an empty shard"
                )
            offset = path.stat().st_size - len(rows) * rows.itemsize
            self.files.append(StepFile(path, self.rows, len(rows), rows.dtype, offset))
            self.rows += len(rows)
        self.runs: list[Run] = read_runs(folder / "metadata.db")
        if not self.runs:
            raise BadInput(folder / "metadata.db", "has no runs: pack the drop again")
        if self.runs[0].id < 0 or self.runs[-1].id > 0xFFFFFFFF:
            raise BadInput(folder / "metadata.db", "run ids must fit the column run_id (uint32)")
        self._ids = np.array([run.id for run in self.runs], np.uint32)
        self._ends = np.cumsum([run.steps for run in self.runs], dtype=np.int64)
        if int(self._ends[-1]) != self.rows:
            raise self._mismatch()

    def read(self, start: int, stop: int) -> Rows:
        """Rows [start, stop) as a new array that may be changed.

        The rows have the layout of their files; rows from files of both layouts have
        STEP_ROW_DTYPE. Files are read, not mapped, so the memory is that of the array.
        """
        touched = [f for f in self.files if f.first < stop and start < f.first + f.rows]
        if len({file.dtype.itemsize for file in touched}) > 1:
            whole = np.empty(stop - start, STEP_ROW_DTYPE)
            for file in touched:
                a, b = max(start, file.first), min(stop, file.first + file.rows)
                # Copied as bytes, because assigning rows would not copy their padding.
                as_bytes(whole)[a - start : b - start] = as_bytes(to_aligned(self.read(a, b)))
            return whole
        rows = np.empty(stop - start, touched[0].dtype if touched else STEP_ROW_DTYPE)
        octets = rows.view(np.uint8).data
        for file in touched:
            item = file.dtype.itemsize
            a, b = max(start, file.first), min(stop, file.first + file.rows)
            into = octets[(a - start) * item : (b - start) * item]
            _fill(file.path, file.offset + (a - file.first) * item, into)
        return rows

    def batches(self, *, whole_runs: bool, most: int = BATCH_ROWS) -> Iterator[Batch]:
        """The pack in batches, each compared with `runs`.

        whole_runs: whether to cut only between runs; a run of more than `most` rows then makes
            a longer batch. Otherwise each batch but the last has `most` rows.
        most: number of rows; default BATCH_ROWS.
        """
        start = 0
        while start < self.rows:
            stop = min(start + most, self.rows)
            if whole_runs:
                # The last end of a run up to `stop`, or the end of a run that is longer.
                at = int(np.searchsorted(self._ends, stop, "right"))
                within = int(self._ends[at - 1]) if at else 0
                stop = within if within > start else int(self._ends[at])
            yield self.batch(start, stop)
            start = stop

    def batch(self, start: int, stop: int) -> Batch:
        """Rows [start, stop), compared with `runs`; BadInput where they do not agree."""
        rows = self.read(start, stop)
        first = int(np.searchsorted(self._ends, start, "right"))
        last = int(np.searchsorted(self._ends, stop, "left"))
        cuts = np.concatenate([[start], np.minimum(self._ends[first : last + 1], stop)])
        counts = np.diff(cuts)
        if not np.array_equal(rows["run_id"], np.repeat(self._ids[first : last + 1], counts)):
            raise self._mismatch()
        return Batch(start, rows, first, counts)

    def run_bounds(self, place: int) -> tuple[int, int]:
        """The first row of the run with this index in `runs`, and the row behind its last."""
        end = int(self._ends[place])
        return end - self.runs[place].steps, end

    def _mismatch(self) -> BadInput:
        """The error to raise, after counting the rows of each run."""
        counts = np.zeros(len(self.runs), np.int64)
        for start in range(0, self.rows, BATCH_ROWS):
            ids = self.read(start, min(start + BATCH_ROWS, self.rows))["run_id"]
            places = np.searchsorted(self._ids, ids)
            known = self._ids[np.minimum(places, len(self._ids) - 1)] == ids
            if not known.all():
                at = int(np.flatnonzero(~known)[0])
                return BadInput(
                    self.folder,
                    f"row {start + at} belongs to run {int(ids[at])}, which metadata.db does not"
                    " have: steps and database are of different builds",
                )
            counts += np.bincount(places, minlength=len(counts))
        for run, count in zip(self.runs, counts.tolist(), strict=True):
            if run.steps != count:
                return BadInput(
                    self.folder,
                    f"run {run.id} has {run.steps} steps by metadata.db, but {count} rows:"
                    " steps and database are of different builds",
                )
        return BadInput(
            self.folder,
            "rows do not stand run by run in the order of metadata.db: sort them by run_id",
        )


def _fill(path: Path, offset: int, into: memoryview) -> None:
    """Read bytes of a file from an offset until the buffer is full."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while into:
            count = os.preadv(descriptor, [into], offset)
            if count == 0:
                raise BadInput(path, f"ends at byte {offset}, but was longer when it was opened")
            into, offset = into[count:], offset + count
    finally:
        os.close(descriptor)
