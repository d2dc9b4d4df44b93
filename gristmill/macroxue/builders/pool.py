"""Build `macroxue/pool`; the publisher deletes members. Source: docs/formats/macroxue.md#merge."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.macroxue.builders.pool_members import (
    Member,
    joined_names,
    joined_runs,
    joined_session,
    open_members,
    refuse_nesting,
    write_trace,
    write_warnings,
)
from gristmill.macroxue.config import MergeConfig
from gristmill.macroxue.format.metadata_db import content_sha256, write_metadata
from gristmill.macroxue.format.rows import PADDING, STEP_FORMATS, Rows, as_bytes, to_layout
from gristmill.macroxue.format.shards import ShardWriter
from gristmill.macroxue.format.valuation_types import write_valuation_types
from gristmill.macroxue.read.step_stream import BATCH_ROWS
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
    write_trace(out / "trace.jsonl", members)
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
            raise BadInput(
                stream.folder,
                f"row {start + at} has valuation_type {int(kinds[at])}, but"
                f" valuation_types.json names {len(ids)}: they are of different builds",
            )
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
