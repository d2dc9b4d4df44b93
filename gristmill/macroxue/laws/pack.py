"""Laws of packs, and how they name their places. Source: docs/formats/macroxue.md#pack-laws."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.families import Subject
from gristmill.laws import MOST, Few
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import Run, read_runs
from gristmill.macroxue.format.rows import Rows, as_bytes
from gristmill.macroxue.format.shards import open_steps, step_files
from gristmill.macroxue.format.valuation_types import MAX_NAMES, read_valuation_types
from gristmill.macroxue.read.step_stream import Batch
from gristmill.macroxue.read.trace import trace
from gristmill.macroxue.rules.moves import DIRECTIONS
from gristmill.printable import printable


def place(row: np.void, number: int) -> str:
    """The name of a row in violations: run, step and row."""
    return f"run {row['run_id']} step {row['step_index']} (row {number})"


class Finder(Few):
    """The first violations of each law, of rows and runs."""

    def __init__(self, pack: Path | None = None, most: int = MOST) -> None:
        """Begin; `most` violations of a law are named."""
        super().__init__("further places", "{more} more", most)
        self._pack = pack

    def rows(
        self, law: str, batch: Batch, wrong: npt.NDArray[np.bool_], found: str
    ) -> Iterator[Violation]:
        """A violation for each wrong row; `found` may hold {move} and the names of columns."""
        for at in self._first(law, wrong):
            row = batch.rows[at]
            columns = {name: row[name] for name in row.dtype.names}
            direction = int(row["move_dir"])
            move_name = DIRECTIONS[direction] if direction < 4 else f"move {direction}"
            where = place(row, batch.start + at) + self._raw(int(row["run_id"]))
            yield Violation(law, where, found.format(move=move_name, **columns))

    def places(
        self, law: str, rows: Rows, start: int, wrong: npt.NDArray[np.bool_]
    ) -> Iterator[Violation]:
        """A violation for each wrong row, with the whole row as what was found."""
        for at in self._first(law, wrong):
            yield Violation(law, place(rows[at], start + at), str(rows[at]))

    def _first(self, law: str, wrong: npt.NDArray[np.bool_]) -> list[int]:
        numbers: npt.NDArray[np.int64] = np.flatnonzero(wrong)
        return list(map(int, numbers[: self.take(law, len(numbers))]))

    def run(self, law: str, run_id: int, found: str) -> Iterator[Violation]:
        """A violation of a run."""
        if self.take(law):
            yield Violation(law, f"run {run_id}{self._raw(run_id)}", found)

    def _raw(self, run_id: int) -> str:
        """The raw file of a run, behind its place; empty where no trace leads to it."""
        with suppress(GristmillError, OSError):
            if self._pack is not None and (found := trace(self._pack, run_id))["steps"] is not None:
                run = "" if found["raw_run"] is None else f"run {found['raw_run']} "
                return f", {run}of {found['drop']}/{printable(found['steps'])}"
        return ""


# Rows that are checked together.
_BATCH_ROWS = 1 << 18


DATABASE, NAMES, TRACE = "metadata.db", "valuation_types.json", "trace.jsonl"


def pack_laws(path: Path, without: Collection[str] = ()) -> Iterator[Violation]:
    """Find what breaks the laws of a pack; where a file cannot be read, only `files_open`.

    without: those of DATABASE, NAMES and TRACE that another program need not write; the laws that
        need them are left out. Default: none.
    """
    try:
        files = step_files(path)
        shards = [open_steps(file) for file in files]
        runs = [] if DATABASE in without else read_runs(path / DATABASE)
        kinds = MAX_NAMES if NAMES in without else len(read_valuation_types(path / NAMES))
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)
        return
    yield from shard_laws(files, shards)
    if DATABASE not in without:
        yield from run_laws(shards, runs)
    yield from row_laws(shards, kinds)
    if not {DATABASE, TRACE} & set(without):
        yield from trace_laws(path / TRACE, runs)


def shard_laws(files: list[Path], shards: list[Rows]) -> Iterator[Violation]:
    """Check one_layout, shards_numbered and shards_full."""
    for i, (file, rows) in enumerate(zip(files, shards, strict=True)):
        if rows.dtype != shards[0].dtype:
            yield Violation("one_layout", file.name, f"{rows.dtype.itemsize} bytes a row")
        if file.name not in ("steps.npy", f"steps-{i:05d}.npy"):
            yield Violation("shards_numbered", file.name, f"is file {i} of the pack")
        last = i == len(files) - 1
        if len(rows) == 0 or (not last and len(rows) != len(shards[0])):
            yield Violation("shards_full", file.name, f"{len(rows)} rows")
        if len(rows) > len(shards[0]):
            yield Violation("shards_full", file.name, f"{len(rows)} rows, more than the first")


def run_laws(shards: list[Rows], runs: list[Run]) -> Iterator[Violation]:
    """Check run_ids, row_total and runs_contiguous."""
    total = sum(len(rows) for rows in shards)
    ends = np.cumsum([run.steps for run in runs], dtype=np.int64)
    if [run.id for run in runs] != list(range(len(runs))):
        yield Violation("run_ids", "metadata.db", "ids are not 0, 1, 2, ... without gaps")
    if not runs or ends[-1] != total:
        steps = int(ends[-1]) if runs else 0
        yield Violation("row_total", "metadata.db", f"runs have {steps} steps, files {total} rows")
        return
    base = 0
    for rows in shards:
        for at in range(0, len(rows), _BATCH_ROWS):
            ids = rows["run_id"][at : at + _BATCH_ROWS]
            owners = np.searchsorted(ends, np.arange(base + at, base + at + len(ids)), "right")
            wrong = np.flatnonzero(ids != owners)
            if len(wrong):
                first = int(wrong[0])
                where = place(rows[at + first], base + at + first)
                owner = int(owners[first])
                yield Violation("runs_contiguous", where, f"is among the rows of run {owner}")
                return
        base += len(rows)


def row_laws(shards: list[Rows], kinds: int) -> Iterator[Violation]:
    """Check the laws row_move_dir to row_padding."""
    base, finder = 0, Finder()
    for rows in shards:
        yield from _row_laws(rows, base, kinds, finder)
        base += len(rows)
    yield from finder.rest()


def _row_laws(rows: Rows, base: int, kinds: int, finder: Finder) -> Iterator[Violation]:
    bits = np.arange(4, dtype=np.uint8)
    cells = np.uint64(4) * np.arange(15, -1, -1, dtype=np.uint64)
    for at in range(0, len(rows), _BATCH_ROWS):
        batch = rows[at : at + _BATCH_ROWS]
        masked = np.flatnonzero(batch["tile_65536_mask"])
        nibbles = (batch["board"][masked, None] >> cells) & np.uint64(15)
        marked = (batch["tile_65536_mask"][masked, None] >> np.arange(16, dtype=np.uint16)) & 1
        capped = np.ones(len(batch), bool)
        capped[masked] = ((marked == 0) | (nibbles == 15)).all(axis=1)
        legal = (batch["ev_legal"][:, None] >> bits) & 1
        evs = batch["branch_evs"]
        checks = {
            "move_dir": batch["move_dir"] < 4,
            "valuation_type": batch["valuation_type"] < kinds,
            "ev_legal": batch["ev_legal"] < 16,
            "tile_65536_mask": capped,
            "branch_evs": (~np.isnan(evs) & ((legal == 1) | (evs == 0))).all(axis=1),
        }
        if rows.dtype.itemsize == 48:
            checks["padding"] = (as_bytes(batch)[:, 26:28] == 0).all(axis=1)
        for column, good in checks.items():
            yield from finder.places(f"row_{column}", batch, base + at, ~good)


def trace_laws(path: Path, runs: list[Run]) -> Iterator[Violation]:
    """Check that trace.jsonl has one line a run, with rows, first row and both digests."""
    try:
        lines = read_lines(path)
    except BadInput as error:
        yield Violation("trace", path.name, str(error))
        return
    if len(lines) != len(runs):
        yield Violation("trace", path.name, f"{len(lines)} lines for {len(runs)} runs")
        return
    first_row = 0
    for number, (line, run) in enumerate(zip(lines, runs, strict=True), 1):
        place = (line.get("run_id"), line.get("rows"), line.get("first_row"))
        hashes = [line.get(key, "") for key in ("meta_sha256", "steps_sha256")]
        if place != (run.id, run.steps, first_row) or any(len(str(text)) != 64 for text in hashes):
            yield Violation("trace", f"{path.name} line {number}", f"is not the line of {run}")
            return
        first_row += run.steps


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a pack; another program need not write all of its files."""
    without = subject.missing({DATABASE: "runs", NAMES: "row_valuation_type", TRACE: "trace"})
    return pack_laws(subject.folder, without)
