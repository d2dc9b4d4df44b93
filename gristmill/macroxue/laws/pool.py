"""Laws of pools, also of the origin of a run. Source: docs/formats/macroxue.md#pool-laws."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.macroxue.builders.pool_members import pool_members
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import Run, read_runs, read_session
from gristmill.macroxue.laws.pack import DATABASE, TRACE, pack_laws


def pool_laws(path: Path) -> Iterator[Violation]:
    """Find what breaks the laws of a pool: files, runs, rows, members and trace.

    Lines of trace.jsonl need no digests, because a member may lack a trace.
    """
    try:
        session, trace = read_session(path / DATABASE), read_lines(path / TRACE)
    except (BadInput, OSError) as error:
        place = (error.file, error.rule) if isinstance(error, BadInput) else (str(path), str(error))
        yield Violation("files_open", *place)
        return
    for broken in pack_laws(path, without=[TRACE]):
        yield broken
        if broken.law == "files_open":
            return
    runs = read_runs(path / DATABASE)
    try:
        members = pool_members(path)
        yield from member_laws(members, runs, session)
        yield from origin_laws(trace, members, runs)
    except BadInput as error:
        yield Violation("members", "packs", error.rule)
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        yield Violation("members", "packs", f"not what merge writes: {error!r}")


def member_laws(
    members: list[dict[str, Any]], runs: list[Run], session: dict[str, str]
) -> Iterator[Violation]:
    """Check members and session_carried."""
    first_run = first_row = 0
    for member in members:
        name, count = member["name"], member["runs"]
        rows = sum(run.steps for run in runs[first_run : first_run + count])
        stated = (member["first_run"], member["first_row"], member["rows"])
        if stated != (first_run, first_row, rows):
            yield Violation(
                "members", f"pack {name}", f"{stated}, its runs make {first_run, first_row, rows}"
            )
        for key in member["session"]:
            if f"{name}/{key}" not in session:
                yield Violation("session_carried", f"pack {name}", f"key {key!r} is missing")
        first_run, first_row = first_run + count, first_row + rows
    if first_run != len(runs):
        yield Violation("members", "packs", f"count {first_run} runs, metadata.db has {len(runs)}")


def origin_laws(
    trace: list[dict[str, Any]], members: list[dict[str, Any]], runs: list[Run]
) -> Iterator[Violation]:
    """Check that each run has its line in trace.jsonl, and an origin that no other run has."""
    owners = [member["name"] for member in members for _ in range(member["runs"])]
    if not len(trace) == len(runs) == len(owners):
        yield Violation("origin", "trace.jsonl", f"{len(trace)} lines for {len(runs)} runs")
        return
    first_row = 0
    origins: set[tuple[str, int]] = set()
    for number, (line, run, owner) in enumerate(zip(trace, runs, owners, strict=True), 1):
        place = (line.get("run_id"), line.get("rows"), line.get("first_row"))
        source = (line.get("from") or [{}])[0]
        origin = (source.get("pack", ""), source.get("run_id", -1))
        if place != (run.id, run.steps, first_row) or origin[0] != owner or origin in origins:
            yield Violation("origin", f"trace.jsonl line {number}", f"is not the line of {run}")
            return
        origins.add(origin)
        first_row += run.steps


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a pool."""
    return pool_laws(subject.folder)
