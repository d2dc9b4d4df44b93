"""What must hold of a finished pack, checked from its files alone.

Laws of single rows and of the tables stand here; whether board_eval is right and
the games were played by the rules, in `game_laws.py`. Each yields what breaks it,
with the first place found, and never stops the laws after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import Run, read_runs
from gristmill.macroxue.format.rows import Rows, as_bytes
from gristmill.macroxue.format.shards import open_steps, step_files
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.laws.report import place

_PIECE = 1 << 18


def pack_laws(path: Path) -> Iterator[Violation]:
    """All laws of a pack that Gristmill built (docs/formats/macroxue.md#pack-laws)."""
    try:
        files = step_files(path)
        shards = [open_steps(file) for file in files]
        runs = read_runs(path / "metadata.db")
        names = read_valuation_types(path / "valuation_types.json")
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)
        return
    yield from shard_laws(files, shards)
    yield from run_laws(shards, runs)
    yield from row_laws(shards, len(names))
    yield from trace_laws(path / "trace.jsonl", runs)


def shard_laws(files: list[Path], shards: list[Rows]) -> Iterator[Violation]:
    """One layout; numbers 0, 1, 2, ...; every shard full but the last, none empty."""
    for i, (file, rows) in enumerate(zip(files, shards, strict=True)):
        if rows.dtype != shards[0].dtype:
            yield Violation("one_layout", file.name, f"{rows.dtype.itemsize} bytes a row")
        if file.name not in ("steps.npy", f"steps-{i:05d}.npy"):
            yield Violation("shards_numbered", file.name, f"stands at place {i}")
        last = i == len(files) - 1
        if len(rows) == 0 or (not last and len(rows) != len(shards[0])):
            yield Violation("shards_full", file.name, f"{len(rows)} rows")
        if len(rows) > len(shards[0]):
            yield Violation("shards_full", file.name, f"{len(rows)} rows, more than the first")


def run_laws(shards: list[Rows], runs: list[Run]) -> Iterator[Violation]:
    """Ids are 0, 1, 2, ...; rows stand run by run in that order, as many as `runs` says."""
    total = sum(len(rows) for rows in shards)
    ends = np.cumsum([run.steps for run in runs], dtype=np.int64)
    if [run.id for run in runs] != list(range(len(runs))):
        yield Violation("run_ids", "metadata.db", "ids are not 0, 1, 2, ... without gaps")
    if not runs or ends[-1] != total:
        said = int(ends[-1]) if runs else 0
        yield Violation("row_total", "metadata.db", f"runs say {said} steps, files have {total}")
        return
    base = 0
    for rows in shards:
        for at in range(0, len(rows), _PIECE):
            found = rows["run_id"][at : at + _PIECE]
            owners = np.searchsorted(ends, np.arange(base + at, base + at + len(found)), "right")
            wrong = np.flatnonzero(found != owners)
            if len(wrong):
                first = int(wrong[0])
                where = place(rows[at + first], base + at + first)
                owner = int(owners[first])
                yield Violation("runs_contiguous", where, f"stands among the rows of run {owner}")
                return
        base += len(rows)


def row_laws(shards: list[Rows], kinds: int) -> Iterator[Violation]:
    """Columns hold what they may; EVs are numbers, and 0 where their legal bit is clear."""
    base = 0
    for rows in shards:
        yield from _row_laws(rows, base, kinds)
        base += len(rows)


def _row_laws(rows: Rows, base: int, kinds: int) -> Iterator[Violation]:
    bits = np.arange(4, dtype=np.uint8)
    cells = np.uint64(4) * np.arange(15, -1, -1, dtype=np.uint64)
    broken: set[str] = set()
    for at in range(0, len(rows), _PIECE):
        piece = rows[at : at + _PIECE]
        masked = np.flatnonzero(piece["tile_65536_mask"])
        nibbles = (piece["board"][masked, None] >> cells) & np.uint64(15)
        marked = (piece["tile_65536_mask"][masked, None] >> np.arange(16, dtype=np.uint16)) & 1
        capped = np.ones(len(piece), bool)
        capped[masked] = ((marked == 0) | (nibbles == 15)).all(axis=1)
        legal = (piece["ev_legal"][:, None] >> bits) & 1
        evs = piece["branch_evs"]
        checks = {
            "move_dir": piece["move_dir"] < 4,
            "valuation_type": piece["valuation_type"] < kinds,
            "ev_legal": piece["ev_legal"] < 16,
            "tile_65536_mask": capped,
            "branch_evs": (~np.isnan(evs) & ((legal == 1) | (evs == 0))).all(axis=1),
        }
        if rows.dtype.itemsize == 48:
            checks["padding"] = (as_bytes(piece)[:, 26:28] == 0).all(axis=1)
        for column, good in checks.items():
            if column not in broken and not good.all():
                broken.add(column)
                row = at + int(np.flatnonzero(~good)[0])
                yield Violation(f"row_{column}", place(rows[row], base + row), str(rows[row]))


def trace_laws(path: Path, runs: list[Run]) -> Iterator[Violation]:
    """trace.jsonl has one line a run, in order, with its rows, first row and both digests."""
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
            yield Violation("trace", f"{path.name} line {number}", f"does not tell of run {run}")
            return
        first_row += run.steps
