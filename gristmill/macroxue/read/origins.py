"""From a run or row to the bytes of its raw files. Source: docs/formats/macroxue.md#trace."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from gristmill import contract
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Misuse, Request
from gristmill.hashing import sha256_file
from gristmill.macroxue.format.metadata_db import read_runs
from gristmill.macroxue.format.shards import open_steps, step_files
from gristmill.macroxue.format.view_files import SIDES, TRAIN, read_description
from gristmill.macroxue.raw.read_steps import RawRun
from gristmill.macroxue.raw.step_files import find_steps, runs_of
from gristmill.macroxue.read.gather import Gather
from gristmill.macroxue.read.trace import RunTrace, trace
from gristmill.provenance.trace_inputs import NotTraced, Origin, notes, source
from gristmill.untrusted.files import LinkRule

_DROPS: Final = "drops/macroxue"


def run_origins(folder: Path, run: int, step: int | None = None) -> Iterator[contract.Trace]:
    """Trace a run of a pack or pool, or its step of this `step_index`."""
    found = trace(folder, run)
    yield found
    row = None
    if step is not None:
        rows = _rows(folder)
        first, stop = (min(each, len(rows)) for each in (found["first_row"], found.stop))
        places = np.flatnonzero(rows.rows(np.arange(first, stop))["step_index"] == step)
        if not len(places):
            raise GristmillError(f"run {run} of {folder} has no step {step}")
        row = int(places[0])
    yield from notes(_raw(folder, found, row, step))


def row_origins(
    folder: Path, row: int, facts: Mapping[str, object] | None = None
) -> Iterator[contract.Trace]:
    """Trace a row of a pack or pool: `facts`, its run and step, then the raw files."""
    rows = _rows(folder)
    if not 0 <= row < len(rows):
        raise GristmillError(f"{folder} has rows 0 to {len(rows) - 1}, not {row}")
    (stored,) = rows.rows(np.array([row]))
    step = int(stored["step_index"])
    yield Origin({**(facts or {}), "row": row, "step_index": step})
    found = trace(folder, int(stored["run_id"]))
    yield found
    yield from notes(_raw(folder, found, row - found["first_row"], step))


def _rows(folder: Path) -> Gather:
    return Gather([open_steps(file) for file in step_files(folder)])


def _raw(
    folder: Path, found: RunTrace, row: int | None, step: int | None
) -> Iterator[contract.Trace]:
    """The raw files of a run, and the place of one of its rows in them."""
    if found["drop"] is None:
        raise NotTraced(f"the pack that run {found['run_id']} came from had no trace")
    root, drop = source(folder).root, f"{_DROPS}/{found['drop']}"
    facts: dict[str, object] = {}
    for name in ("meta", "steps"):
        path, size = f"{drop}/{found[name]}", found[f"{name}_bytes"]
        if wrong := _different(root / path, size, found[f"{name}_sha256"]):
            raise NotTraced(f"{path} {wrong}: the line of the step in it is not known")
        facts |= {f"raw_{name}": path, f"raw_{name}_bytes": f"0-{size}"}
    if row is not None and step is not None and found["raw_run"] is not None:
        file, number, begin, end = step_row(root / drop, found["raw_run"], step)
        facts |= {"raw_steps": f"{drop}/{file}", "raw_row": number}
        facts["raw_row_bytes"] = f"{begin}-{end}"
    elif row is not None:
        number, begin, end = step_line(root / str(facts["raw_steps"]), row)
        facts |= {"raw_line": number, "raw_line_bytes": f"{begin}-{end} of the unpacked text"}
    yield Origin(facts)


def _different(path: Path, size: int | None, sha256: str | None) -> str | None:
    """What is different about a raw file, None where nothing is."""
    try:
        found = path.stat().st_size
        if found != size:
            return f"has {found:,} bytes, recorded {size:,}"
        return None if sha256_file(path) == sha256 else "has other bytes than the run was read from"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def step_line(path: Path, row: int) -> tuple[int, int, int]:
    """The line of a step in a `.jsonl.gz`: number from 1, and its bytes of the unpacked text."""
    begin = 0
    try:
        with gzip.open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    if row == 0:
                        return number, begin, begin + len(line)
                    row -= 1
                begin += len(line)
    except (OSError, EOFError) as error:
        raise BadInput(path, f"is damaged ({error}): fetch the file anew") from error
    raise GristmillError(f"{path} has no line for this row: pack the drop again")


def step_row(drop: Path, raw_run: int, step_index: int) -> tuple[str, int, int, int]:
    """The row of a step in a drop of steps: file, row from 1, first byte and last byte + 1."""
    steps = find_steps(drop, LinkRule(follow=True, roots=("/",)))
    run = next((run for run in runs_of(steps) if run.raw_run == raw_run), None) if steps else None
    if run is None:
        raise GristmillError(f"{drop} has no run {raw_run}: pack the drop again")
    return RawRun.read(run).place(step_index)


def of_run(request: Request) -> Iterator[contract.Trace]:
    """Trace the run that a person asks for, or one of its steps."""
    return run_origins(request.path, request.number, request.options.get("step"))


def of_value(request: Request) -> Iterator[contract.Trace]:
    """Trace a row of a value sidecar through its pack. Raises Misuse for a step."""
    if request.options.get("step") is not None:
        raise Misuse("--step does not apply to value sidecars: a sample is a row")
    made = source(request.path).made_from("macroxue/pack", "macroxue/pool")
    yield from row_origins(made.folder, request.number, {"pack": made.record.artifact})


def of_view(request: Request) -> Iterator[contract.Trace]:
    """Trace a run of a view, or one of its steps, through its source."""
    view, run = read_description(request.path), request.number
    side = request.path / ((request.options.get("split") or TRAIN) if view.sides == SIDES else "")
    if run not in (known := {each.id for each in read_runs(side / "metadata.db")}):
        raise GristmillError(f"{side} has no run {run}; it has {len(known)} runs")
    made = source(request.path).made_from("macroxue/pack", "macroxue/pool")
    run_id, symmetry = view.source_run(run)
    yield Origin({"source": made.record.artifact, "run_id": run_id, "symmetry": symmetry})
    yield from run_origins(made.folder, run_id, request.options.get("step"))
