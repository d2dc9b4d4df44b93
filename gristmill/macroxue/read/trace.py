"""From a run of a pack or pool to its raw files. Source: docs/formats/macroxue.md#trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gristmill import contract
from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.format.jsonl import iter_lines, run_of
from gristmill.macroxue.format.kind_of import kind_of
from gristmill.reading.sorted_lines import lines_from


@dataclass(frozen=True)
class MemberRun:
    """The run of a pool in one of the packs that it went through."""

    pack: str
    run_id: int


@dataclass(frozen=True)
class RunTrace(contract.Trace):
    """Where a run comes from: its line of trace.jsonl.

    meta_bytes, meta_sha256, steps_bytes, steps_sha256: sizes and hashes of both raw files.
    raw_run: the run id in the raw files, where they are steps of other programs.
    members: for a pool, the packs that the run went through, the last one first; else empty.

    The fields of the drop are None in a pool whose member had no trace.
    """

    run_id: int
    rows: int
    first_row: int
    drop: str | None = None
    meta: str | None = None
    meta_bytes: int | None = None
    meta_sha256: str | None = None
    steps: str | None = None
    steps_bytes: int | None = None
    steps_sha256: str | None = None
    raw_run: int | None = None
    members: tuple[MemberRun, ...] = ()

    def facts(self) -> dict[str, object]:
        """The keys and values of the line of trace.jsonl, for a person."""
        origin = {
            key: value
            for key in ("drop", "meta", "steps", *_HASHED, "raw_run")
            if (value := getattr(self, key)) is not None
        }
        place = {"run_id": self.run_id, **origin, "rows": self.rows, "first_row": self.first_row}
        return place | ({"from": list(map(asdict, self.members))} if self.members else {})


_TEXTS = ("drop", "meta", "meta_sha256", "steps", "steps_sha256")
_SIZES = ("meta_bytes", "steps_bytes")
_HASHED = ("meta_bytes", "meta_sha256", "steps_bytes", "steps_sha256")


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
    counts = {key: line.get(key) for key in ("run_id", "rows", "first_row")}
    # A member without a trace gives lines without these keys, all or none of them.
    keys = (*_TEXTS, *_SIZES)
    origin = {key: line.get(key) for key in keys} if any(key in line for key in keys) else {}
    for key, value in (counts | origin).items():
        if key in _TEXTS and not isinstance(value, str):
            raise BadInput(path, f"`{key}` is not a text: build the pack again", number)
        if key not in _TEXTS and (type(value) is not int or value < 0):
            raise BadInput(path, f"`{key}` is not a count: build the pack again", number)
    raw_run = line.get("raw_run")
    if raw_run is not None and type(raw_run) is not int:
        raise BadInput(path, "`raw_run` is not a run id: build the pack again", number)
    members = _members(path, number, line.get("from", []))
    if not origin and not members:
        raise BadInput(path, "names neither raw files nor a member: build the pack again", number)
    return RunTrace(**counts, **origin, raw_run=raw_run, members=members)  # type: ignore[arg-type]


def _members(path: Path, number: int, value: Any) -> tuple[MemberRun, ...]:
    members = []
    for member in value if isinstance(value, list) else [None]:
        pack, run_id = (
            (member.get("pack"), member.get("run_id")) if isinstance(member, dict) else (None, None)
        )
        if not isinstance(pack, str) or type(run_id) is not int:
            raise BadInput(
                path, "`from` is not a list of packs and run ids: merge the pool again", number
            )
        members.append(MemberRun(pack, run_id))
    return tuple(members)
