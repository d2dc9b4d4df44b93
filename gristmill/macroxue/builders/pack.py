"""Build `macroxue/pack` from a raw drop. Source: docs/formats/macroxue.md#raw-drop."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.macroxue.builders.pack_parts import Part, cut_parts, make_part, read_rows
from gristmill.macroxue.builders.pack_sidefiles import Ledger
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.format.metadata_db import content_sha256, write_metadata
from gristmill.macroxue.format.rows import STEP_FORMATS
from gristmill.macroxue.format.shards import ShardWriter
from gristmill.macroxue.format.valuation_types import write_valuation_types
from gristmill.macroxue.raw.drops import find_runs
from gristmill.macroxue.read.splits import identity
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

# Zipped bytes from which it pays to load the compiled scanner (a quarter of a second, in which
# the strict parser reads 12,000 lines), and to start worker processes (half a second, in which
# one process packs 1.5 million rows).
_SCANNER_PAYS = 400_000
_WORKERS_PAY = 100_000_000


@dataclass(frozen=True)
class PackSummary(Summary):
    """Counts of a pack, which docs/numbers.md explains."""

    runs: int
    rows: int
    shards: int
    quarantined: int
    quarantined_by_rule: Mapping[str, int]
    unpaired: int
    unpaired_logs: int
    repeated_runs: int
    count_mismatches: int
    warnings: int
    empty_runs: int
    score_min: int
    score_max: int
    seconds_played: float
    rows_by_valuation_type: Mapping[str, int]
    rows_by_max_rank: Mapping[str, int]
    runs_by_highest_tile: Mapping[str, int]


def _workers(config: PackConfig, size: int, parts: int) -> int:
    """Number of processes; size: zipped bytes of all steps files."""
    if config.workers:
        return min(config.workers, parts)
    return min(len(os.sched_getaffinity(0)), parts) if size >= _WORKERS_PAY else 1


def _where(drops: Path | Sequence[Path]) -> str:
    return ", ".join(map(str, [drops] if isinstance(drops, str | Path) else drops))


def pack(
    drops: Path | Sequence[Path],
    out: Path,
    config: PackConfig,
    parts: PartStore | None = None,
    *,
    session: Mapping[str, str] | None = None,
    progress: Progress = SILENT,
    links: LinkRule = REFUSE_LINKS,
) -> PackSummary:
    """Pack raw drops: write the rows, tables and side files of their runs.

    drops: folder of a raw drop, or of several, in the order of their rows.
    out: folder to make; it must not exist.
    config: layout, shards, quarantine and workers.
    parts: store of finished parts, from which a killed build continues; default none.
    session: further keys of the table `session`; default none.
    progress: gets the stage "read" in zipped bytes of steps files; default silent.
    links: what happens to links in the drops; default: they are refused.

    Returns the counts. Raises BadInput with file, line and rule for a run that breaks one, for a
    drop without runs or rows, and where more runs are set aside than `quarantine_share` allows;
    ValueError for a key of `session` that the pack has itself; OSError as it comes.
    """
    out = Path(out)
    drop = find_runs(drops, links)
    if not drop.runs:
        raise BadInput(
            _where(drops),
            "no run found: a run is a *.meta.json or *.meta.json.gz with its .jsonl.gz next to it",
        )
    out.mkdir(parents=True)
    size = sum(run.steps_size for run in drop.runs)
    tasks = cut_parts(drop.runs, config.layout, config.on_error, size >= _SCANNER_PAYS)
    workers = _workers(config, size, len(tasks))
    ledger = Ledger(drop, _where(drops), config.quarantine_share)
    finished = run_parts(
        make_part, ((part.name, part) for part in tasks), parts, workers, scratch=out
    )
    with (
        # Closing it ends the workers at once when a run breaks a rule.
        closing(finished),
        ShardWriter(out, STEP_FORMATS[config.layout], config.shard_rows) as writer,
        progress.stage("read", unit="bytes", total=size) as stage,
    ):
        for part, (_, path, summary) in zip(tasks, finished, strict=True):
            ids, kinds = ledger.add(part, summary)
            _copy_rows(part, path, ids, kinds, writer)
            stage.advance(part.size)
    ledger.check_rows()
    write_metadata(out / "metadata.db", ledger.run_table, ledger.session(session or {}))
    write_valuation_types(out / "valuation_types.json", ledger.names.known, config.enum_form)
    files = {name: FileNote(rows=rows) for name, rows in writer.written}
    contents = content_sha256(out / "metadata.db")
    files["metadata.db"] = FileNote(rows=ledger.runs, content_sha256=contents)
    files["valuation_types.json"] = FileNote(rows=len(ledger.names.known))
    files |= ledger.write_notes(out)
    return _summary(ledger, files, len(writer.written))


def _copy_rows(
    part: Part,
    path: Path,
    ids: npt.NDArray[np.uint32] | None,
    kinds: npt.NDArray[np.uint8] | None,
    writer: ShardWriter,
) -> None:
    """Copy the rows of a part to the shards.

    ids: final run ids by place in the part. kinds: final valuation_type by that in the rows. None
        where those in the rows are final.
    """
    for rows in read_rows(path, part.layout):
        if ids is not None:
            rows["run_id"] = ids[rows["run_id"] - part.first_id]
        if kinds is not None:
            rows["valuation_type"] = kinds[rows["valuation_type"]]
        writer.write(rows)


def _summary(ledger: Ledger, files: dict[str, FileNote], shards: int) -> PackSummary:
    kinds: Counter[str] = ledger.kinds
    scores = [run.max_score for run in ledger.run_table]
    tiles = Counter(run.highest_tile for run in ledger.run_table)
    return PackSummary(
        files=files,
        runs=ledger.runs,
        rows=ledger.rows,
        shards=shards,
        quarantined=len(ledger.quarantine),
        quarantined_by_rule=ledger.quarantined_by_rule(),
        unpaired=ledger.noted["unpaired_meta"],
        unpaired_logs=ledger.noted["unpaired_log"],
        repeated_runs=ledger.runs - len(set(map(identity, ledger.run_table))),
        count_mismatches=ledger.noted["count_mismatch"],
        warnings=len(ledger.warnings),
        empty_runs=ledger.noted["empty_run"],
        score_min=min(scores),
        score_max=max(scores),
        seconds_played=ledger.seconds(),
        rows_by_valuation_type={name: kinds[name] for name in ledger.names.known},
        rows_by_max_rank={str(rank): ledger.ranks[rank] for rank in sorted(ledger.ranks)},
        runs_by_highest_tile={str(tile): tiles[tile] for tile in sorted(tiles)},
    )
