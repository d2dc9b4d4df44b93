"""The side files of `macroxue/pool`: session keys, trace and warnings.

See also `pool.py`: the rows; `pool_members.py`: the tables of runs and names.

Source: `docs/formats/macroxue.md#session-keys-of-a-pool`,
`docs/formats/macroxue.md#trace-of-a-pool`, `docs/formats/macroxue.md#warnings`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput
from gristmill.macroxue.builders.pool_members import Member
from gristmill.macroxue.format.jsonl import json_text, run_of, write_lines
from gristmill.macroxue.format.metadata_db import read_session

PACKS_KEY = "packs"
"""Session key of a pool: JSON list of {name, runs, rows, first_run, first_row, session}."""


def joined_session(members: Sequence[Member], extras: Mapping[str, str]) -> dict[str, str]:
    """The table `session` of a pool.

    Raises ValueError for a further key that the pool has itself.
    """
    session: dict[str, str] = {}
    entries = []
    for member in members:
        session |= {f"{member.name}/{key}": value for key, value in member.session.items()}
        entries.append(
            {
                "name": member.name,
                "runs": len(member.joined),
                "rows": member.stream.rows,
                "first_run": member.first_id,
                "first_row": member.first_row,
                "session": sorted(member.session),
            }
        )
    session[PACKS_KEY] = json_text(entries)
    if taken := session.keys() & extras.keys():
        raise ValueError(f"session keys {sorted(taken)} are reserved for the pool: rename them")
    return session | dict(extras)


def pool_members(pool: Path) -> list[dict[str, Any]]:
    """The entries of the session key `packs`, in order.

    pool: its folder.

    Raises BadInput where the folder is no pool.
    """
    path = pool / "metadata.db"
    text = read_session(path).get(PACKS_KEY)
    if text is None:
        raise BadInput(path, "has no session key 'packs': it is not a pool")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"session key 'packs' is not JSON: {error}") from error
    whole = isinstance(entries, list) and all(map(_is_entry, entries))
    if not whole:
        raise BadInput(path, "session key 'packs' is not a list of members as merge writes it")
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
    """The table `session` of a member before the merge."""
    session = read_session(pool / "metadata.db")
    keys = next(entry["session"] for entry in pool_members(pool) if entry["name"] == name)
    return {key: session[f"{name}/{key}"] for key in keys}


def write_trace(path: Path, members: Sequence[Member]) -> None:
    """Write trace.jsonl of a pool: one line a run."""
    write_lines(path, _origins(members))


def _origins(members: Sequence[Member]) -> Iterator[dict[str, Any]]:
    for member in members:
        row = member.first_row
        lines = member.trace or [{} for _ in member.joined]
        for run, own, line in zip(member.joined, member.stream.runs, lines, strict=True):
            origin = [{"pack": member.name, "run_id": own.id}, *line.get("from", [])]
            yield {**line, "run_id": run.id, "rows": run.steps, "first_row": row, "from": origin}
            row += run.steps


def write_warnings(path: Path, members: Sequence[Member]) -> int:
    """Write warnings.jsonl of a pool, unless no member has a warning.

    Returns the number of lines.
    """
    lines = []
    for member in members:
        ids = {own.id: run.id for run, own in zip(member.joined, member.stream.runs, strict=True)}
        for line in member.warnings:
            run_id = run_of(line)
            renumbered = {"run_id": ids[run_id]} if run_id in ids else {}
            lines.append({**line, **renumbered, "pack": member.name})
    if lines:
        write_lines(path, lines)
    return len(lines)
