"""From a run or row to the bytes of its raw files. Source: docs/formats/macroxue.md#trace."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gristmill import contract
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Misuse, Request
from gristmill.hashing import sha256_file
from gristmill.macroxue.format.metadata_db import read_runs
from gristmill.macroxue.format.view_files import SIDES, TRAIN, read_description
from gristmill.macroxue.raw.read_steps import RawRun
from gristmill.macroxue.raw.step_files import find_steps, runs_of
from gristmill.macroxue.read.lookup import PackRows
from gristmill.macroxue.read.trace import RunTrace, trace
from gristmill.provenance.trace_inputs import NotTraced, Origin, notes, source
from gristmill.untrusted.files import LinkRule

_DROPS: Final = "drops/macroxue"


def run_origins(folder: Path, run: int, step: int | None = None) -> Iterator[contract.Trace]:
    """Trace a run of a pack or pool, or its step of this `step_index`."""
    found = trace(folder, run)
    yield found
    place = None
    if step is not None:
        first = found.first_row
        place = PackRows(folder).find_row(run, first, found.rows, step) - first, step
    yield from notes(_raw(folder, found, place))


def row_origins(
    folder: Path, row: int, facts: Mapping[str, object] | None = None
) -> Iterator[contract.Trace]:
    """Trace a row of a pack or pool: `facts`, its run and step, then the raw files."""
    run, step = PackRows(folder).place(row)
    yield Origin({**(facts or {}), "row": row, "step_index": step})
    found = trace(folder, run)
    yield found
    yield from notes(_raw(folder, found, (row - found.first_row, step)))


def value_origins(folder: Path, row: int) -> Iterator[contract.Trace]:
    """Trace a row of a value sidecar: its row, run and step in the pack, then the raw files."""
    made = source(folder).made_from("macroxue/pack", "macroxue/pool")
    yield from row_origins(made.folder, row, {"pack": made.record.artifact})


def view_origins(
    folder: Path, run: int, step: int | None = None, side: str = TRAIN
) -> Iterator[contract.Trace]:
    """Trace a run of a training view, or one of its steps: to its source, then as `run_origins`."""
    view = read_description(folder)
    side = side if view.sides == SIDES else ""
    if run not in (known := {each.id for each in read_runs(folder / side / "metadata.db")}):
        raise GristmillError(f"{folder / side} has no run {run}; it has {len(known)} runs")
    made = source(folder).made_from("macroxue/pack", "macroxue/pool")
    run_id, symmetry = view.source_run(run)
    yield Origin({"source": made.record.artifact, "run_id": run_id, "symmetry": symmetry})
    yield from run_origins(made.folder, run_id, step)


def _raw(folder: Path, found: RunTrace, place: tuple[int, int] | None) -> Iterator[contract.Trace]:
    """The raw files of a run."""
    if found.drop is None:
        raise NotTraced(f"the pack that run {found.run_id} came from had no trace")
    root = source(folder).root
    meta, steps = (f"{_DROPS}/{found.drop}/{name}" for name in (found.meta, found.steps))
    facts: dict[str, object] = {
        "raw_meta": meta,
        "raw_meta_bytes": f"0-{found.meta_bytes}",
        "raw_steps": steps,
        "raw_steps_bytes": f"0-{found.steps_bytes}",
    }
    for name, size, sha256 in (
        (meta, found.meta_bytes, found.meta_sha256),
        (steps, found.steps_bytes, found.steps_sha256),
    ):
        if wrong := _different(root / name, size, sha256):
            raise NotTraced(f"{name} {wrong}: the line of the step in it is not known")
    if place is not None and found.raw_run is not None:
        drop = root / _DROPS / found.drop
        name, row, begin, end = step_row(drop, found.raw_run, place[1])
        facts |= {"raw_steps": f"{_DROPS}/{found.drop}/{name}", "raw_row": row}
        facts["raw_row_bytes"] = f"{begin}-{end}"
    elif place is not None:
        line, begin, end = step_line(root / steps, place[0])
        facts |= {"raw_line": line, "raw_line_bytes": f"{begin}-{end} of the unpacked text"}
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
    """Trace the value that a person asks for. Raises Misuse for a step."""
    if request.options.get("step") is not None:
        raise Misuse("--step does not apply to value sidecars: a sample is a row")
    return value_origins(request.path, request.number)


def of_view(request: Request) -> Iterator[contract.Trace]:
    """Trace the run of a view that a person asks for, or one of its steps."""
    options = request.options
    side = options.get("split") or TRAIN
    return view_origins(request.path, request.number, options.get("step"), side)
