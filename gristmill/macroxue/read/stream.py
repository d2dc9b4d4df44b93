"""The rows of a pack: in order and in bounded memory, by number, played; and splits of its runs.

Splits never share a game.
Source: docs/formats/macroxue.md#value-inputs, docs/formats/macroxue.md#gaps,
docs/formats/macroxue.md#splits.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections.abc import Container, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.files import Gap, Run, read_runs
from gristmill.macroxue.format.rows import (
    STEP_ROW_DTYPE,
    Rows,
    as_bytes,
    open_steps,
    refuse_foreign_rows,
    step_files,
    to_aligned,
)
from gristmill.macroxue.rules.game import (
    TrueRanks,
    broken,
    lacks_points,
    legal_moves,
    move,
    true_ranks,
)
from gristmill.reading.sample_numbers import numbers_of

if TYPE_CHECKING:
    from gristmill.reading.folder import HeldFile

_OTHER_BUILDS = "steps and database are of different builds"
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
    """Consecutive rows of a pack, from number `start` on: step rows [N].

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

    Raises BadInput for what is no steps file or has no rows or runs. Reading checks that the rows
    stand run by run in the order of `runs`, as many as it says.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[StepFile] = []
        self.rows = 0
        for path in step_files(folder):
            refuse_foreign_rows(path)
            rows = open_steps(path)
            if len(rows) == 0:
                rule = "holds no rows: leave an empty pack out, or remove an empty shard"
                raise BadInput(path, rule)
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
        """Rows [start, stop) as a new array that may be changed; STEP_ROW_DTYPE of both layouts.

        Files are read, not mapped, so the memory is that of the array.
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
        """The pack in batches of `most` rows, each compared with `runs`.

        whole_runs: whether to cut only between runs; a run of more than `most` rows then makes
            a longer batch.
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
                rule = f"row {start + at} belongs to run {int(ids[at])}, which metadata.db does not"
                return BadInput(self.folder, f"{rule} have: {_OTHER_BUILDS}")
            counts += np.bincount(places, minlength=len(counts))
        for run, count in zip(self.runs, counts.tolist(), strict=True):
            if run.steps != count:
                rule = f"run {run.id} has {run.steps} steps by metadata.db, but {count} rows"
                return BadInput(self.folder, f"{rule}: {_OTHER_BUILDS}")
        rule = "rows do not stand run by run in the order of metadata.db: sort them by run_id"
        return BadInput(self.folder, rule)


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


def check_tables(
    pack: Path, runs: Sequence[Run], steps: Gather, sidecar: Path | None, values: Gather | None
) -> None:
    """Raise BadInput where the tables of a pack, its rows and its sidecar are of other builds.

    Of the rows only the first and the last of each run are read.
    """
    database = pack / "metadata.db"
    for run in runs:
        if not 0 <= run.id < 1 << 32:
            raise BadInput(database, f"run id {run.id} has no 32 bits: build the pack again")
    counts = np.array([run.steps for run in runs], np.int64)
    if (total := int(counts.sum())) != len(steps):
        rule = f"metadata.db counts {total} steps, the files have {len(steps)}: they are of"
        raise BadInput(pack, f"{rule} different builds")
    ids = np.array([run.id for run in runs], np.int64)[counts > 0]
    ends = np.cumsum(counts)[counts > 0]
    edges, expected = np.append(ends - counts[counts > 0], ends - 1), np.append(ids, ids)
    recorded = steps.rows(edges)
    for at in np.flatnonzero(recorded["run_id"] != expected)[:1].tolist():
        rule = f"row {edges[at]} belongs to run {recorded['run_id'][at]}, but metadata.db says"
        raise BadInput(pack, f"{rule} run {expected[at]}")
    valued = recorded if values is None else values.rows(edges)
    for column in ("run_id", "step_index"):
        for row in edges[valued[column] != recorded[column]][:1].tolist():
            rule = f"row {row} has another {column} than the pack: build the sidecar of this pack"
            raise BadInput(str(sidecar), rule)


@dataclass(frozen=True)
class Played:
    """The rows of a batch, and what their moves do.

    moves: uint8 [N], the recorded moves, with 0 for one above 3: it is a violation, and must not
        stop the other laws.
    after: uint8 [N, 16], ranks after the moves.
    reward: int64 [N], points of the moves.
    changed: bool [N], whether the moves change the boards.
    """

    known: TrueRanks
    moves: npt.NDArray[np.uint8]
    after: npt.NDArray[np.uint8]
    reward: npt.NDArray[np.int64]
    changed: npt.NDArray[np.bool_]

    @cached_property
    def legal(self) -> npt.NDArray[np.uint8]:
        """The legal moves, uint8 [N]."""
        return legal_moves(self.known.ranks)


def played(batch: Batch) -> Played:
    """Play the recorded moves of whole runs."""
    known, moves = true_ranks(batch.rows, batch.run_starts()), batch.rows["move_dir"]
    moves = np.where(moves < 4, moves, 0).astype(np.uint8)
    return Played(known, moves, *move(known.ranks, moves))


def counts_on(rows: Rows) -> npt.NDArray[np.bool_]:
    """Whether each row but the first is the next step of the run before it, as bool [N - 1]."""
    judged: npt.NDArray[np.bool_] = rows["run_id"][1:] == rows["run_id"][:-1]
    judged &= rows["step_index"][1:] == rows["step_index"][:-1] + np.uint32(1)
    return judged


def run_facts(
    batch: Batch, reward: npt.NDArray[np.int64]
) -> Iterator[tuple[int, slice, int, bool]]:
    """Facts of each run that has rows; reward: int64 [N], points of each row.

    Yields the index of the run in `StepStream.runs`, its rows in the batch, the sum of its
    points, and whether its step_index counts 0, 1, 2, ...
    """
    steps = batch.rows["step_index"]
    for at, (start, count) in enumerate(
        zip(batch.run_starts().tolist(), batch.counts.tolist(), strict=True)
    ):
        if count:
            own = slice(start, start + count)
            gapless = bool(np.array_equal(steps[own], np.arange(count, dtype=np.uint32)))
            yield batch.first_run + at, own, int(reward[own].sum()), gapless


def gaps_of(batch: Batch, runs: Sequence[Run], games: Played) -> Iterator[Gap]:
    """The gaps of whole runs."""
    rows, known = batch.rows, games.known
    wrong = broken(known, games.after, rows["run_id"][1:] == rows["run_id"][:-1])
    for at, own, points, _ in run_facts(batch, games.reward):
        run, steps, breaks = runs[at], rows["step_index"][own], np.flatnonzero(wrong[own])
        if len(breaks):
            yield Gap(run.id, int(steps[breaks[0]]), "board")
        elif not known.unknown[own].any():
            score = run.max_score if run.max_score >= 0 else run.max_score + (1 << 64)
            if lacks_points(known.ranks[own.start], points, score):
                yield Gap(run.id, int(steps[-1]), "score")


RunIds = npt.NDArray[np.uint32]


class RowSet:
    """The rows of runs uint32 [R], ascending, numbered from 0; memory grows with runs."""

    def __init__(self, run_ids: RunIds, firsts: Sequence[int], counts: Sequence[int]) -> None:
        self.run_ids = run_ids
        self._firsts = np.array(firsts, np.int64)
        self._ends = np.cumsum(counts, dtype=np.int64)
        self._shift = self._firsts - (self._ends - np.array(counts, np.int64))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def rows(self, numbers: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """Row numbers in the pack as int64 [N], by numbers [N] in this set from 0, in any order.

        Raises IndexError for a number outside the set, TypeError for anything but integers.
        """
        within = numbers_of(numbers, len(self), "row", from_end=False)
        if len(within) == 0:
            return within
        runs = np.searchsorted(self._ends, within, "right")
        in_pack: npt.NDArray[np.int64] = within + self._shift[runs]
        return in_pack

    def ranges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The first row of each run in the pack and its number of rows, both int64 [R]."""
        return self._firsts, np.diff(self._ends, prepend=0)

    def all_rows(self) -> npt.NDArray[np.int64]:
        """All row numbers of the set in the pack as int64 [N], ascending."""
        return self.rows(np.arange(len(self)))


def identity(run: Run) -> tuple[int, int, int, int]:
    """The facts by which two runs are the same game: seed, steps, score, highest tile."""
    return run.seed, run.steps, run.max_score, run.highest_tile


def held_by_hash(runs: Sequence[Run], held_out: float, seed: int) -> RunIds:
    """Ids of held out runs, by a hash of their own facts: the same in each pool of a pack."""
    held = []
    for run in runs:
        text = json.dumps([seed, *identity(run)]).encode()
        if int.from_bytes(hashlib.sha256(text).digest()[:7], "big") / (1 << 56) < held_out:
            held.append(run.id)
    return np.array(held, np.uint32)


def held_by_permutation(runs: Sequence[Run], held_out: float, seed: int) -> RunIds:
    """Ids of held out runs as uint32 [R]: the first ceil(held_out * runs) of a permutation.

    A run that is the same game as one of them is held out too.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(runs))
    chosen = {identity(runs[i]) for i in order[: math.ceil(held_out * len(runs))]}
    return np.array([run.id for run in runs if identity(run) in chosen], np.uint32)


def refuse_sharing(runs: Sequence[Run], train: RunIds, held_out: RunIds) -> None:
    """Raise ValueError, naming the first such run, where a run or game is on both sides."""
    training = {int(run_id) for run_id in train}
    held = {int(run_id) for run_id in held_out}
    games = {identity(run): run.id for run in runs if run.id in training}
    for run in runs:
        if run.id in held and identity(run) in games:
            raise ValueError(
                f"run {run.id} is held out, but run {games[identity(run)]} of the training runs is"
                " the same game: change the queries so that they exclude each other"
            )


# ATTACH could write to another file.
_READING = {
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ),
    *(sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE),
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# Of a database file: 2 in both bytes means a write-ahead log, which a copy in memory cannot have.
_JOURNAL = slice(18, 20)


def queried(
    octets: bytes, path: Path, known: Container[int], sql: str, params: Sequence[Any] = ()
) -> RunIds:
    """The run ids in the first column of a query as uint32 [R], ascending, each once.

    octets: of metadata.db. It is queried as a copy in memory, because SQLite opens files by their
        path, which may lead to a rebuilt pack. path: of the file, for errors.
    """
    copy = bytearray(octets)
    copy[_JOURNAL] = b"\1\1"
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(bytes(copy))
        ok, deny = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY
        db.set_authorizer(lambda action, *_: ok if action in _READING else deny)
        try:
            ids = {row[0] for row in db.execute(sql, params)}
        except OverflowError as error:
            rule = f"a parameter of {sql!r} is not a signed number of 64 bits: a seed of 2**63 or "
            raise OverflowError(f"{rule}more is in the table as seed - 2**64") from error
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in _DAMAGED:
                raise
            rule = f"SQLite cannot read it ({error}): build the pack again, or copy it again"
            raise BadInput(path, rule) from error
    if unknown := [value for value in ids if value not in known]:
        raise ValueError(f"the query gives {unknown[0]!r}, which is not the id of a run")
    return np.array(sorted(ids), np.uint32)
