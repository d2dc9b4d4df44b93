"""Random access to rows of several mapped npy files, and whether they are of one build."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.metadata_db import Run
from gristmill.macroxue.format.rows import Rows
from gristmill.reading.folder import HeldFile
from gristmill.reading.sample_numbers import numbers_of

Indices = npt.NDArray[np.integer[Any]]


class Gather:
    """Copies rows by their number over all files."""

    def __init__(self, maps: Sequence[Rows]) -> None:
        self.dtype = maps[0].dtype
        self.counts = tuple(len(rows) for rows in maps)
        # np.take copies an opaque row at once, and a structured row field by field
        # (bench/macroxue_pools.py).
        self._opaque = np.dtype((np.void, self.dtype.itemsize))
        self._maps = [rows.view(self._opaque) for rows in maps]
        self._firsts = np.cumsum([0, *self.counts])
        full, last = self.counts[0], self.counts[-1]
        even = all(count == full for count in self.counts[:-1]) and last <= full
        self._even = full if even else 0

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def rows(self, indices: Indices) -> Rows:
        """Rows [N] as a new array, by their numbers in any order; IndexError for one outside."""
        numbers = numbers_of(indices, len(self), "row", from_end=False)
        out = np.empty(len(numbers), self._opaque)
        if len(numbers) == 0:
            return out.view(self.dtype)
        if len(self._maps) == 1:
            np.take(self._maps[0], numbers, out=out, mode="clip")
        else:
            self._take_from_files(numbers, out)
        return out.view(self.dtype)

    def _take_from_files(self, numbers: npt.NDArray[np.int64], out: npt.NDArray[np.void]) -> None:
        """Copy rows of several files to `out`, file by file."""
        if self._even:
            files = numbers // self._even
        else:
            files = np.searchsorted(self._firsts, numbers, "right") - 1
        # A stable sort of 16-bit numbers is a radix sort.
        small = files.astype(np.uint16) if len(self._maps) <= 1 << 16 else files
        order = np.argsort(small, kind="stable")
        cuts = np.searchsorted(files[order], np.arange(len(self._maps) + 1))
        ordered, copied = numbers[order], np.empty_like(out)
        for file in np.flatnonzero(np.diff(cuts)).tolist():
            rows = slice(cuts[file], cuts[file + 1])
            within = ordered[rows] - self._firsts[file]
            np.take(self._maps[file], within, out=copied[rows], mode="clip")
        out[order] = copied


def check_row_count(pack: Path, runs: Sequence[Run], rows: int) -> None:
    """Raise BadInput where the runs do not have as many steps as the files have rows."""
    total = sum(run.steps for run in runs)
    if total != rows:
        raise BadInput(
            pack,
            f"metadata.db counts {total} steps, the files have {rows}: they are of different"
            " builds",
        )


def check_run_ids(pack: Path, runs: Sequence[Run]) -> None:
    """Raise BadInput where the id of a run is none that a row can have."""
    for run in runs:
        if not 0 <= run.id < 1 << 32:
            raise BadInput(
                pack / "metadata.db", f"run id {run.id} has no 32 bits: build the pack again"
            )


def check_database_size(database: HeldFile) -> None:
    """Raise BadInput for fewer pages than the header says: SQLite reads some files cut short."""
    with database.reading() as path:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = file.read(32)
    # The page size is 65536 where it is stored as 1.
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    if size < (65536 if page == 1 else page) * pages:
        raise BadInput(database.path, f"has {size} bytes, fewer than {pages} pages: copy it again")


def check_run_edges(pack: Path, runs: Sequence[Run], steps: Gather) -> npt.NDArray[np.int64]:
    """Raise BadInput where the first or last row of a run is not where metadata.db says."""
    counts = np.array([run.steps for run in runs], np.int64)
    ids = np.array([run.id for run in runs], np.int64)[counts > 0]
    ends = np.cumsum(counts)[counts > 0]
    edges = np.concatenate([ends - counts[counts > 0], ends - 1])
    expected = np.concatenate([ids, ids])
    recorded = steps.rows(edges)["run_id"]
    wrong = np.flatnonzero(recorded != expected)
    if len(wrong):
        first = int(wrong[0])
        raise BadInput(
            pack,
            f"row {int(edges[first])} belongs to run {int(recorded[first])}, but metadata.db says"
            f" run {int(expected[first])}",
        )
    return edges


def check_values(sidecar: str, edges: npt.NDArray[np.int64], steps: Gather, values: Gather) -> None:
    """Raise BadInput where a sidecar has another run or step than the pack in one of these rows."""
    recorded, valued = steps.rows(edges), values.rows(edges)
    for column in ("run_id", "step_index"):
        wrong = np.flatnonzero(valued[column] != recorded[column])
        if len(wrong):
            row = int(edges[int(wrong[0])])
            raise BadInput(
                sidecar,
                f"row {row} has another {column} than the pack: build the sidecar of this pack",
            )


def check_tables(
    pack: Path, runs: Sequence[Run], steps: Gather, sidecar: Path | None, values: Gather | None
) -> None:
    """All checks of this module on a pack and its sidecar."""
    check_run_ids(pack, runs)
    check_row_count(pack, runs, len(steps))
    edges = check_run_edges(pack, runs, steps)
    if values is not None:
        check_values(str(sidecar), edges, steps, values)
