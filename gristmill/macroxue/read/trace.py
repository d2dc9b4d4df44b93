"""From a run of a pack or pool to its raw files. Source: docs/formats/macroxue.md#trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.format.jsonl import iter_lines, run_of
from gristmill.macroxue.format.kind_of import kind_of
from gristmill.provenance.trace_inputs import Origin
from gristmill.reading.reader import lines_from

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

    @property
    def stop(self) -> int:
        """The number of the row behind its last, in this pack or pool."""
        return int(self["first_row"] + self["rows"])


def trace(folder: Path, run: int) -> RunTrace:
    """Find the raw files of a run.

    Run ids ascend in a trace.jsonl of ours, so that few lines are read; one in another order is
    read line by line.
    """
    path = folder / "trace.jsonl"
    if not path.is_file():
        raise GristmillError(_no_trace(folder))
    # What is wrong with a line is said below, with its number.
    with suppress(BadInput, OSError, ValueError, RecursionError), path.open("rb") as file:
        line = json.loads(next(lines_from(file, _id_of, run), b"{}"))
        if run_of(line) == run:
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


def _id_of(text: bytes) -> int:
    line = json.loads(text)
    run_id = run_of(line) if isinstance(line, dict) else None
    if run_id is None:
        raise ValueError("the line names no run")
    return run_id


def _no_trace(folder: Path) -> str:
    kind = kind_of(folder)
    if kind is None:
        return f"{folder} is not a pack or pool of 2048 games: it has no trace.jsonl"
    if kind == "values":
        return f"{folder} is a value sidecar and has no trace.jsonl: trace the run in its pack"
    return (
        f"{folder} has no trace.jsonl, as packs of other programs have none: pack the raw drop"
        " again to trace its runs"
    )


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
