"""From a run or row to the bytes of its raw files. Source: docs/formats/macroxue.md#trace."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill import contract
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Misuse, Request
from gristmill.history.rows import Kept
from gristmill.layout import DROPS
from gristmill.loading.past import Past
from gristmill.loading.source import Picked, Source
from gristmill.macroxue.config import SIDES, TRAIN
from gristmill.macroxue.format.files import (
    iter_lines,
    json_text,
    read_description,
    read_runs,
    run_of,
)
from gristmill.macroxue.format.rows import open_steps, step_files
from gristmill.macroxue.raw.read_steps import RawRun
from gristmill.macroxue.raw.step_files import find_steps, runs_of
from gristmill.macroxue.read.stream import Gather, held_by_hash, held_by_permutation
from gristmill.provenance import Record
from gristmill.provenance.record import Input
from gristmill.provenance.trace_inputs import Edge, NotTraced, Origin, Row, Steps, source, walk
from gristmill.reading.reader import lines_from
from gristmill.untrusted.files import LinkRule

_COUNTS: Final = {"run_id": int, "rows": int, "first_row": int}
_RAW: Final = {
    **{"drop": str, "meta": str, "meta_bytes": int, "meta_sha256": str},
    **{"steps": str, "steps_bytes": int, "steps_sha256": str},
}
"""Keys of a run that was read from raw files; a member without a trace gives lines without them."""


class RunTrace(Origin):
    """Where a run comes from: its line of trace.jsonl; a key that it does not have is None."""

    def __getitem__(self, key: str) -> Any:
        """The value of a key."""
        return self.values.get(key)


def trace(folder: Path, run: int) -> RunTrace:
    """Find the raw files of a run.

    Run ids ascend in a trace.jsonl of ours, so that few lines are read; one in another order is
    read line by line.
    """
    path = folder / "trace.jsonl"
    if not path.is_file():
        rule = "trace a pack or pool, and pack raw drops again that another program packed"
        raise GristmillError(f"{folder} has no trace.jsonl: {rule}")
    # What is wrong with a line is said below, with its number.
    damage = (BadInput, OSError, ValueError, TypeError, AttributeError, RecursionError)
    with suppress(*damage), path.open("rb") as file:
        found = lines_from(file, lambda text: run_of(json.loads(text)), run)
        if run_of(line := json.loads(next(found, b"{}"))) == run:
            return _run_trace(path, run + 1, line)
    runs = 0
    for number, line in iter_lines(path):
        run_id = run_of(line)
        if run_id is None:
            raise BadInput(path, "`run_id` is not an integer: build the pack again", number)
        if run_id == run:
            return _run_trace(path, number, line)
        runs += 1
    raise GristmillError(f"{path} has no run {run}: it traces {runs:,} runs, counted from 0")


def _run_trace(path: Path, number: int, line: Mapping[str, Any]) -> RunTrace:
    """The line of the run as a RunTrace; BadInput where a value has another type."""
    is_raw, members = any(key in line for key in _RAW), line.get("from", [])
    for key, kind in (_COUNTS | _RAW if is_raw else _COUNTS).items():
        if type(line.get(key)) is not kind or (kind is int and line[key] < 0):
            what = "count" if kind is int else "text"
            raise BadInput(path, f"`{key}` is not a {what}: build the pack again", number)
    if type(line.get("raw_run")) not in (int, type(None)):
        raise BadInput(path, "`raw_run` is not a run id: build the pack again", number)
    if not isinstance(members, list) or not all(map(_is_member, members)):
        rule = "`from` is not a list of packs and run ids: merge the pool again"
        raise BadInput(path, rule, number)
    if not is_raw and not members:
        raise BadInput(path, "names neither raw files nor a member: build the pack again", number)
    return RunTrace(line)


def _is_member(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("pack"), str)
        and type(value.get("run_id")) is int
    )


_DROPS: Final = "drops/macroxue"


def row_origins(folder: Path, row: int) -> Iterator[contract.Trace]:
    """Trace a row of a pack or pool: its run and step, then the raw files."""
    return walk(EDGES, Row(ROW, folder, (row, {})))


PACK: Final = "macroxue/pack"
ROW: Final = "a row"


def _run(folder: Path, place: tuple[Any, ...]) -> Steps:
    """The edge of a run of a pack or pool, or of its step: the raw files."""
    run, step, *_ = place
    found, row = trace(folder, run), None
    if step is not None:
        rows = _rows(folder)
        first = found["first_row"]
        own = np.arange(first, first + found["rows"])
        places = np.flatnonzero(rows.rows(own[own < len(rows)])["step_index"] == step)
        if not len(places):
            raise GristmillError(f"run {run} of {folder} has no step {step}")
        row = int(places[0])
    yield found
    yield _raw(folder, found, row, step)


def _row(folder: Path, place: tuple[int, Mapping[str, object]]) -> Steps:
    """The edge of a row: its run. place: its number, and facts that come before its own."""
    row, facts = place
    rows = _rows(folder)
    if not 0 <= row < len(rows):
        raise GristmillError(f"{folder} has rows 0 to {len(rows) - 1}, not {row}")
    (stored,) = rows.rows(np.array([row]))
    step = int(stored["step_index"])
    found = trace(folder, int(stored["run_id"]))
    yield Origin({**facts, "row": row, "step_index": step})
    yield found
    yield _raw(folder, found, row - found["first_row"], step)


def _value(folder: Path, place: tuple[Any, ...]) -> Steps:
    """The edge of a row of values: the row of its pack."""
    row, step, _ = place
    if step is not None:
        raise Misuse("--step does not apply to value sidecars: a sample is a row")
    made = source(folder).made_from("macroxue/pack", "macroxue/pool")
    yield Row(ROW, made.folder, (row, {"pack": made.record.artifact}))


def _viewed(folder: Path, place: tuple[int, int | None, str]) -> Steps:
    """The edge of a run of a view: the run of its source."""
    run, step, split = place
    view = read_description(folder)
    side = folder / (split if view.sides == SIDES else "")
    if run not in (known := {each.id for each in read_runs(side / "metadata.db")}):
        raise GristmillError(f"{side} has no run {run}; it has {len(known)} runs")
    made = source(folder).made_from("macroxue/pack", "macroxue/pool")
    run_id, symmetry = view.source_run(run)
    yield Origin({"source": made.record.artifact, "run_id": run_id, "symmetry": symmetry})
    yield Row(PACK, made.folder, (run_id, step))


EDGES: Final[Mapping[str, Edge]] = {
    PACK: _run,
    "macroxue/pool": _run,
    ROW: _row,
    "macroxue/values": _value,
    "macroxue/training_view": _viewed,
}
"""From a row to the rows that it was made from, by asset; packs and pools have runs and rows."""


def _rows(folder: Path) -> Gather:
    return Gather([open_steps(file) for file in step_files(folder)])


def _raw(folder: Path, found: RunTrace, row: int | None, step: int | None) -> Origin:
    """The raw files of a run, and the place of one of its rows in them."""
    if found["drop"] is None:
        raise NotTraced(f"the pack that run {found['run_id']} came from had no trace")
    made, drop = source(folder), f"{_DROPS}/{found['drop']}"
    root, facts = made.root, dict[str, object]()
    for name in ("meta", "steps"):
        path, size = f"{drop}/{found[name]}", found[f"{name}_bytes"]
        made.raw_file(Input(path=path, bytes=size, sha256=found[f"{name}_sha256"]))
        facts |= {f"raw_{name}": path, f"raw_{name}_bytes": f"0-{size}"}
    if row is not None and step is not None and found["raw_run"] is not None:
        file, number, begin, end = step_row(root / drop, found["raw_run"], step)
        facts |= {"raw_steps": f"{drop}/{file}", "raw_row": number}
        facts["raw_bytes"] = f"{begin}-{end}"
    elif row is not None:
        number, begin, end = step_line(root / str(facts["raw_steps"]), row)
        facts |= {"raw_line": number, "raw_unpacked_bytes": f"{begin}-{end}"}
    return Origin(facts)


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


def traced(asset: str, request: Request) -> Iterator[contract.Trace]:
    """Where a run of a pack, pool or view came from, or its step `step`, or a row of values.

    Raises Misuse for a step of values.
    """
    step, split = request.options.get("step"), request.options.get("split") or TRAIN
    return walk(EDGES, Row(asset, request.path, (request.number, step, split)))


_NOT_OF_A_LOG: Final = ("run_id", "first_row", "from")


def rows(folder: Path, _: Record) -> Iterator[Kept]:
    """A row for each log, by its name: a merge numbers runs again. Its samples are its steps."""
    for _number, line in iter_lines(folder / "trace.jsonl"):
        content = {name: value for name, value in line.items() if name not in _NOT_OF_A_LOG}
        name, file, end = "", "", -1
        if "steps" in line:
            run = line.get("raw_run")
            name = f"{line['drop']}/{line['meta']}" + (f" run {run}" if run is not None else "")
            file, end = f"{DROPS}/macroxue/{line['drop']}/{line['steps']}", line["steps_bytes"]
        place = 0 if end >= 0 else -1
        first, count = line["first_row"], line["rows"]
        text = json_text(content).encode()
        yield Kept("", name, text, file, place, end, first, count)


def past(kept: Past, **options: Any) -> Source:
    """The rows of a pack or pool as `dataset.opened` gives them."""
    own = kept.of()
    if not (held_out := options.get("held_out", 0.0)):
        return own
    runs = read_runs(kept.versions[0].folder / "metadata.db")
    by_hash = options.get("by", "hash") == "hash"
    held = (held_by_hash if by_hash else held_by_permutation)(
        runs, held_out, options.get("seed", 42)
    )
    is_held = np.isin([run.id for run in runs], held)
    steps = np.array([run.steps for run in runs], np.int64)
    chosen = is_held == (options.get("side", "train") == "held_out")
    return Picked(own, (np.cumsum(steps) - steps)[chosen], steps[chosen])
