"""The rows of a pack from first to last, in bounded memory, held against its metadata.db.

What every builder and law that walks through a whole pack has in common.
Random access for training is the business of `reader.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.foreign_packs import refuse_other_forms
from gristmill.macroxue.format.metadata_db import Run, read_runs
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, Rows, as_bytes, to_aligned
from gristmill.macroxue.format.shards import open_steps, step_files

BLOCK_ROWS = 1 << 17
"""Rows read at a time: 6 MB, enough to drown the cost of a read."""


@dataclass(frozen=True)
class StepFile:
    """One steps file: rows [first, first + rows) of the pack start at byte `offset` of it."""

    path: Path
    first: int
    rows: int
    dtype: np.dtype[Any]
    offset: int


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows of a pack. start: number of the first one in the pack.

    first_run, counts: the run (by place in `runs`) that the stretch starts in,
    and how many of its rows belong to that run, to the next, and so on.
    """

    start: int
    rows: Rows
    first_run: int
    counts: npt.NDArray[np.int64]

    def run_starts(self) -> npt.NDArray[np.int64]:
        """Where each run begins in `rows`; meaningful for stretches of whole runs."""
        return np.cumsum(self.counts) - self.counts


class StepStream:
    """A pack opened for walking through. Needs steps files and metadata.db, nothing else.

    runs: the rows of `runs` by ascending id. rows: how many steps the files have.
    Raises BadInput where a file is not a steps file, is empty, or the database
    has no runs. That rows stand run by run in the order of `runs`, as many as it
    says (docs/formats/macroxue.md#value-inputs), is checked on the way; BadInput then names pack and run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[StepFile] = []
        self.rows = 0
        for path in step_files(folder):
            refuse_other_forms(path)
            rows = open_steps(path)
            if len(rows) == 0:
                raise BadInput(
                    path, "holds no rows: an empty pack or shard is of no use, leave it out"
                )
            offset = path.stat().st_size - len(rows) * rows.itemsize
            self.files.append(StepFile(path, self.rows, len(rows), rows.dtype, offset))
            self.rows += len(rows)
        self.runs: list[Run] = read_runs(folder / "metadata.db")
        if not self.runs:
            raise BadInput(folder / "metadata.db", "has no runs: nothing can be made of this pack")
        if self.runs[0].id < 0 or self.runs[-1].id > 0xFFFFFFFF:
            raise BadInput(folder / "metadata.db", "run ids must fit the column run_id (uint32)")
        self._ids = np.array([run.id for run in self.runs], np.uint32)
        self._ends = np.cumsum([run.steps for run in self.runs], dtype=np.int64)
        if int(self._ends[-1]) != self.rows:
            raise self._mismatch()

    def read(self, start: int, stop: int) -> Rows:
        """Rows [start, stop) as a new array that may be changed, in the layout of their files.

        Plain reads, not maps, so that memory is what the array takes. Rows from
        files of both layouts come as STEP_ROW_DTYPE.
        """
        touched = [f for f in self.files if f.first < stop and start < f.first + f.rows]
        if len({file.dtype.itemsize for file in touched}) > 1:
            whole = np.empty(stop - start, STEP_ROW_DTYPE)
            for file in touched:
                a, b = max(start, file.first), min(stop, file.first + file.rows)
                # As bytes: assigning rows would leave their padding as it was.
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

    def stretches(self, *, whole_runs: bool, most: int = BLOCK_ROWS) -> Iterator[Stretch]:
        """The pack in stretches of about `most` rows, each checked against `runs`.

        whole_runs: cut between runs only, so that a longer run makes a longer
        stretch; otherwise every `most` rows.
        """
        start = 0
        while start < self.rows:
            stop = min(start + most, self.rows)
            if whole_runs:
                # The last end within reach, or the end of the run that is too long.
                at = int(np.searchsorted(self._ends, stop, "right"))
                within = int(self._ends[at - 1]) if at else 0
                stop = within if within > start else int(self._ends[at])
            yield self.stretch(start, stop)
            start = stop

    def stretch(self, start: int, stop: int) -> Stretch:
        """Rows [start, stop), checked against `runs`."""
        rows = self.read(start, stop)
        first = int(np.searchsorted(self._ends, start, "right"))
        last = int(np.searchsorted(self._ends, stop, "left"))
        cuts = np.concatenate([[start], np.minimum(self._ends[first : last + 1], stop)])
        counts = np.diff(cuts)
        if not np.array_equal(rows["run_id"], np.repeat(self._ids[first : last + 1], counts)):
            raise self._mismatch()
        return Stretch(start, rows, first, counts)

    def run_bounds(self, place: int) -> tuple[int, int]:
        """First row of the run at this place in `runs`, and the row behind its last."""
        end = int(self._ends[place])
        return end - self.runs[place].steps, end

    def _mismatch(self) -> BadInput:
        """What is wrong, found by counting every run's rows."""
        met = np.zeros(len(self.runs), np.int64)
        for start in range(0, self.rows, BLOCK_ROWS):
            ids = self.read(start, min(start + BLOCK_ROWS, self.rows))["run_id"]
            places = np.searchsorted(self._ids, ids)
            known = self._ids[np.minimum(places, len(self._ids) - 1)] == ids
            if not known.all():
                at = int(np.flatnonzero(~known)[0])
                return BadInput(
                    self.folder,
                    f"row {start + at} belongs to run {int(ids[at])}, which metadata.db does not"
                    " know: steps and database are of different builds",
                )
            met += np.bincount(places, minlength=len(met))
        for run, count in zip(self.runs, met.tolist(), strict=True):
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
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while into:
            got = os.preadv(descriptor, [into], offset)
            if got == 0:
                raise BadInput(path, f"ends at byte {offset}, though it was longer when opened")
            into, offset = into[got:], offset + got
    finally:
        os.close(descriptor)
