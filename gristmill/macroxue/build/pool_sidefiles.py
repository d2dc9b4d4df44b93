"""What a pool tells beside its rows: session keys, trace and warnings, and its page.

How the rows get into a pool is the business of `merger.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput
from gristmill.macroxue.build.pool_members import Member
from gristmill.macroxue.format.jsonl import json_text, run_of, write_lines
from gristmill.macroxue.format.metadata_db import read_session

PACKS_KEY = "packs"
"""Session key of a pool: JSON list of {name, runs, rows, first_run, first_row, session}."""


def joined_session(members: Sequence[Member], extras: Mapping[str, str]) -> dict[str, str]:
    """The session keys of a pool: each member's under `<name>/<key>`, `packs`, and extras.

    Nothing is lost: names are unique and without '/', and `packs` lists each member's own keys, so
    that `member_session` gives back what the member had. A pool of pools nests:
    `<pool>/<pack>/<key>`.
    """
    session: dict[str, str] = {}
    listed = []
    for member in members:
        session |= {f"{member.name}/{key}": value for key, value in member.session.items()}
        listed.append(
            {
                "name": member.name,
                "runs": len(member.joined),
                "rows": member.stream.rows,
                "first_run": member.first_id,
                "first_row": member.first_row,
                "session": sorted(member.session),
            }
        )
    session[PACKS_KEY] = json_text(listed)
    if taken := session.keys() & extras.keys():
        raise ValueError(f"session keys {sorted(taken)} are the pool's own")
    return session | dict(extras)


def pool_members(pool: Path) -> list[dict[str, Any]]:
    """The entries of `packs` in a pool's session, in order. BadInput where it is no pool."""
    path = pool / "metadata.db"
    text = read_session(path).get(PACKS_KEY)
    if text is None:
        raise BadInput(path, "has no session key 'packs': not a pool made by merge")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"session key 'packs' is not JSON: {error}") from error
    whole = isinstance(entries, list) and all(map(_is_entry, entries))
    if not whole:
        raise BadInput(path, "session key 'packs' is no list of packs as merge writes it")
    return list(entries)


def _is_entry(entry: Any) -> bool:
    numbers = ("runs", "rows", "first_run", "first_row")
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("session"), list)
        and all(type(entry.get(key)) is int for key in numbers)
    )


def member_session(pool: Path, name: str) -> dict[str, str]:
    """The session table that a member of a pool had before the merge."""
    session = read_session(pool / "metadata.db")
    keys = next(entry["session"] for entry in pool_members(pool) if entry["name"] == name)
    return {key: session[f"{name}/{key}"] for key in keys}


def write_trace(path: Path, members: Sequence[Member]) -> None:
    """One line a run: its place here, where it came from, and what its pack's trace said.

    `from` lists the packs it went through, the last one first: [{pack, run_id}, ...];
    the fields of the raw pair (drop, meta, steps, bytes and sha256 of both) are
    carried unchanged where the member has a trace.
    """
    write_lines(path, _origins(members))


def _origins(members: Sequence[Member]) -> Iterator[dict[str, Any]]:
    for member in members:
        row = member.first_row
        old = member.trace or [{} for _ in member.joined]
        for run, was, line in zip(member.joined, member.stream.runs, old, strict=True):
            came = [{"pack": member.name, "run_id": was.id}, *line.get("from", [])]
            yield {**line, "run_id": run.id, "rows": run.steps, "first_row": row, "from": came}
            row += run.steps


def write_warnings(path: Path, members: Sequence[Member]) -> int:
    """The packs' warnings with `pack` and, where they name a run, its id here; returns how many.

    `pack` is the outermost pack: a warning of a pool's pool has lost the inner name,
    which the run's trace line still has. No file where there is none.
    """
    lines = []
    for member in members:
        new = {was.id: run.id for run, was in zip(member.joined, member.stream.runs, strict=True)}
        for line in member.warnings:
            run_id = run_of(line)
            here = {"run_id": new[run_id]} if run_id in new else {}
            lines.append({**line, **here, "pack": member.name})
    if lines:
        write_lines(path, lines)
    return len(lines)
