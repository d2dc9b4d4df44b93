"""Build `macroxue/pool`; the publisher deletes members. Source: docs/formats/macroxue.md#merge."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.layout import published_path
from gristmill.macroxue.config import MergeConfig
from gristmill.macroxue.format.files import (
    MAX_NAMES,
    Run,
    content_sha256,
    json_text,
    read_lines,
    read_session,
    read_valuation_types,
    run_of,
    write_lines,
    write_metadata,
    write_valuation_types,
)
from gristmill.macroxue.format.rows import (
    PADDING,
    STEP_FORMATS,
    Rows,
    ShardWriter,
    as_bytes,
    to_layout,
)
from gristmill.macroxue.read.stream import BATCH_ROWS, StepStream, identity
from gristmill.run.progress import SILENT, Progress


@dataclass(frozen=True)
class MergeSummary(Summary):
    """Counts of a pool."""

    packs: int
    runs: int
    rows: int
    shards: int
    names: int
    warnings: int
    untraced_runs: int
    repeated_runs: int
    runs_by_pack: Mapping[str, int]
    rows_by_pack: Mapping[str, int]


def merge(
    packs: Sequence[Path],
    out: Path,
    config: MergeConfig,
    *,
    session: Mapping[str, str] | None = None,
    progress: Progress = SILENT,
) -> MergeSummary:
    """Merge packs or pools into one pool.

    packs: folders of two or more members, in the order of their rows.
    out: folder to make; it must not exist.
    config: layout, shards, names of the members and workers.
    session: further keys of the table `session`; default none.
    progress: gets the stage "merge" in rows; default silent.

    Raises BadInput for fewer than two packs, for folders (also `out`) that are equal or lie in
    one another, for a pack without rows, for rows that do not agree with metadata.db or have no
    name for their valuation_type, and for more than 255 names; ValueError for a key of `session`
    that the pool has itself.
    """
    packs, out = [Path(pack) for pack in packs], Path(out)
    refuse_nesting(packs, out)
    members = open_members(packs, config.names)
    names = joined_names(members)
    repeated = joined_runs(members)
    out.mkdir(parents=True)
    total = sum(member.stream.rows for member in members)
    with (
        ShardWriter(out, STEP_FORMATS[config.layout], config.shard_rows) as writer,
        progress.stage("merge", unit="rows", total=total) as stage,
    ):
        for rows in _renumbered(members, names, config):
            writer.write(rows)
            stage.advance(len(rows))
    table = [run for member in members for run in member.joined]
    write_metadata(out / "metadata.db", table, joined_session(members, session or {}))
    write_valuation_types(out / "valuation_types.json", names, config.enum_form)
    write_lines(out / "trace.jsonl", _origins(members))
    files = {name: FileNote(rows=rows) for name, rows in writer.written}
    files["metadata.db"] = FileNote(
        rows=len(table), content_sha256=content_sha256(out / "metadata.db")
    )
    files["valuation_types.json"] = FileNote(rows=len(names))
    files["trace.jsonl"] = FileNote(rows=len(table))
    if warnings := write_warnings(out / "warnings.jsonl", members):
        files["warnings.jsonl"] = FileNote(rows=warnings)
    return MergeSummary(
        files=files,
        packs=len(members),
        runs=len(table),
        rows=total,
        shards=len(writer.written),
        names=len(names),
        warnings=warnings,
        untraced_runs=sum(len(member.joined) for member in members if member.trace is None),
        repeated_runs=repeated,
        runs_by_pack={member.name: len(member.joined) for member in members},
        rows_by_pack={member.name: member.stream.rows for member in members},
    )


def _renumbered(
    members: Sequence[Member], names: Sequence[str], config: MergeConfig
) -> Iterator[Rows]:
    """Yield the rows of the pool in order, in batches."""

    def renumber(member: Member, start: int, ids: npt.NDArray[np.uint8]) -> Rows:
        stream = member.stream
        batch = stream.batch(start, min(start + BATCH_ROWS, stream.rows))
        rows = to_layout(batch.rows, config.layout)
        if config.layout == "aligned48":
            as_bytes(rows)[:, PADDING] = 0
        first = member.first_id + batch.first_run
        run_ids = np.arange(first, first + len(batch.counts), dtype=np.uint32)
        rows["run_id"] = np.repeat(run_ids, batch.counts)
        kinds = rows["valuation_type"]
        if int(kinds.max()) >= len(ids):
            at = int(np.flatnonzero(kinds >= len(ids))[0])
            rule = f"row {start + at} has valuation_type {int(kinds[at])}, but valuation_types.json"
            rule += f" names {len(ids)}: they are of different builds"
            raise BadInput(stream.folder, rule)
        if not np.array_equal(ids, np.arange(len(ids))):
            rows["valuation_type"] = ids[kinds]
        return rows

    place = {name: at for at, name in enumerate(names)}
    tasks = (
        (member, start, ids)
        for member in members
        for ids in [np.array([place[name] for name in member.names], np.uint8)]
        for start in range(0, member.stream.rows, BATCH_ROWS)
    )
    if config.workers <= 1:
        for task in tasks:
            yield renumber(*task)
        return
    # Reads and copies release the lock of the interpreter, so threads are enough.
    pending: deque[Future[Rows]] = deque()
    with ThreadPoolExecutor(config.workers) as pool:
        try:
            for task in tasks:
                pending.append(pool.submit(renumber, *task))
                if len(pending) > config.workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass
class Member:
    """A pack that is merged; trace: lines of its trace.jsonl, one a run, None without the file."""

    name: str
    stream: StepStream
    names: tuple[str, ...]
    session: dict[str, str]
    trace: list[dict[str, Any]] | None
    warnings: list[dict[str, Any]]
    first_id: int = 0
    first_row: int = 0
    joined: list[Run] = field(default_factory=list)

    @staticmethod
    def open(folder: Path, name: str) -> Member:
        """Open a pack."""
        stream = StepStream(folder)
        names = read_valuation_types(folder / "valuation_types.json")
        trace = _read_trace(folder / "trace.jsonl", stream.runs)
        path = folder / "warnings.jsonl"
        warnings = read_lines(path) if path.exists() else []
        session = read_session(folder / "metadata.db")
        return Member(name, stream, names, session, trace, warnings)


def _read_trace(path: Path, runs: Sequence[Run]) -> list[dict[str, Any]] | None:
    if not path.exists():
        return None
    lines = read_lines(path)
    if [line.get("run_id") for line in lines] != [run.id for run in runs]:
        raise BadInput(path, "does not have one line for each run of metadata.db, in order")
    for number, line in enumerate(lines, 1):
        if not isinstance(line.get("from", []), list):
            raise BadInput(path, "`from` is not a list of packs", number)
    return lines


def refuse_nesting(packs: Sequence[Path], out: Path) -> None:
    """Raise BadInput for fewer than two packs, and for folders that are equal or nested."""
    if len(packs) < 2:
        raise BadInput(", ".join(map(str, packs)) or "no pack", "a merge needs two packs or more")
    for pack in packs:
        if not pack.is_dir():
            raise BadInput(pack, "is not a folder: give the folder of a pack")
    real = [(pack, pack.resolve(strict=True)) for pack in packs] + [(out, out.resolve())]
    for at, (pack, place) in enumerate(real):
        for other, elsewhere in real[:at]:
            if place == elsewhere:
                raise BadInput(pack, f"is the same folder as {other}: give each one once")
            if place.is_relative_to(elsewhere) or elsewhere.is_relative_to(place):
                inner, outer = (pack, other) if place.is_relative_to(elsewhere) else (other, pack)
                cure = "give packs and an output that are separate folders"
                raise BadInput(inner, f"is inside {outer}: {cure}")


def open_members(packs: Sequence[Path], names: Sequence[str]) -> list[Member]:
    """Open the members of a pool; without `names` they have those of their folders."""
    names = names or tuple(published_path(pack).name for pack in packs)
    if len(names) != len(packs):
        raise ValueError(f"{len(names)} names for {len(packs)} packs")
    for at, name in enumerate(names):
        if name in names[:at]:
            rule = f"another pack is called {name!r} too"
            raise BadInput(packs[at], f"{rule}: give each a name by MergeConfig(names=...)")
    return [Member.open(pack, name) for pack, name in zip(packs, names, strict=True)]


def joined_names(members: Sequence[Member]) -> tuple[str, ...]:
    """The valuation names of a pool, by id. Raises BadInput for more than 255 names."""
    names: dict[str, None] = {}
    for member in members:
        names |= dict.fromkeys(member.names)
        if len(names) > MAX_NAMES:
            rule = f"with the packs before it makes {len(names)} names: {MAX_NAMES} fit the column"
            raise BadInput(member.stream.folder / "valuation_types.json", rule)
    return tuple(names)


def joined_runs(members: Sequence[Member]) -> int:
    """Set the places of members and the ids of runs; returns how many equal an earlier run."""
    known: set[tuple[int, int, int, int]] = set()
    run_id = row = repeated = 0
    for member in members:
        member.first_id, member.first_row = run_id, row
        for run in member.stream.runs:
            repeated += identity(run) in known
            known.add(identity(run))
            member.joined.append(replace(run, id=run_id))
            run_id += 1
        row += member.stream.rows
    return repeated


PACKS_KEY = "packs"
"""Session key of a pool: JSON list of {name, runs, rows, first_run, first_row, session}."""


def joined_session(members: Sequence[Member], extras: Mapping[str, str]) -> dict[str, str]:
    """The table `session` of a pool."""
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
    """The entries of the session key `packs`, in order; BadInput where the folder is not a pool."""
    path = pool / "metadata.db"
    text = read_session(path).get(PACKS_KEY)
    if text is None:
        raise BadInput(path, "has no session key 'packs': it is not a pool")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"session key 'packs' is not JSON: {error}") from error
    numbers = {"runs", "rows", "first_run", "first_row"}
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("session"), list)
        and all(type(entry.get(key)) is int for key in numbers)
        for entry in entries
    ):
        raise BadInput(path, "session key 'packs' is not a list of members as merge writes it")
    return list(entries)


def _origins(members: Sequence[Member]) -> Iterator[dict[str, Any]]:
    """The lines of trace.jsonl, one a run."""
    for member in members:
        row = member.first_row
        lines = member.trace or [{} for _ in member.joined]
        for run, own, line in zip(member.joined, member.stream.runs, lines, strict=True):
            origin = [{"pack": member.name, "run_id": own.id}, *line.get("from", [])]
            yield {**line, "run_id": run.id, "rows": run.steps, "first_row": row, "from": origin}
            row += run.steps


def write_warnings(path: Path, members: Sequence[Member]) -> int:
    """Write warnings.jsonl of a pool, unless no member has a warning."""
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
