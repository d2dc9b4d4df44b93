"""Which runs, logs and ticks of the instance are kept, and the removal of the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import dagster as dg

from assets.history import instance_database, instance_files
from assets.history.tables import History, OtherStorage

KEEP_DAYS: Final = 30
KEEP_RUNS: Final = 1000
LEAST_DAYS: Final = 1
MOST_DAYS: Final = 36_500
MOST_RUNS: Final = 10_000_000
_DAY: Final = 86_400.0
_PAGE: Final = 1000
_ENDED: Final = {
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
}
_BACKFILL: Final = "dagster/backfill"
_BACKFILLS_UNDER_WAY: Final = ("REQUESTED", "CANCELING", "FAILING")


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be.

    events: events without a run, as arrivals of drops, that newer ones have replaced.
    before, after: bytes of the whole instance; equal where nothing was removed.
    not_compacted: why the databases keep their size; None where they were compacted.
    """

    runs: int
    emptied: int
    log_bytes: int
    events: int
    ticks: int
    before: int
    after: int
    kept: int
    not_compacted: str | None = None


@dataclass(frozen=True)
class _Plan:
    deleted: list[str]
    emptied: list[str]
    kept: int
    under_way: bool


def prune(
    instance: dg.DagsterInstance,
    keep_days: int = KEEP_DAYS,
    keep_runs: int = KEEP_RUNS,
    *,
    dry_run: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Pruned:
    """Remove runs, logs and ticks that are old or too many.

    instance: the Dagster instance.
    keep_days: what ended in so many days stays; from LEAST_DAYS to MOST_DAYS.
    keep_runs: but no more than so many runs, the newest ones.
    dry_run: only count; default False.
    report: takes a line before each step that may take long; default none.

    These stay, however old they are: runs that have not ended; runs of a backfill that is under
    way; the newest run of each partition that was materialized, observed or planned, and of each
    check. Of such a run the log is removed, unless it failed.

    A kill loses nothing: what is half removed is removed by the next call.
    Raises OtherStorage where the history is neither in SQLite files nor in Postgres.
    """
    history = _history(instance)
    before, cutoff = history.size(), time.time() - max(keep_days, LEAST_DAYS) * _DAY
    plan = _plan(instance, history, cutoff, keep_runs)
    logged = history.logged()
    # Left by a kill, or by a run that somebody deleted in the UI.
    known = {run.dagster_run.run_id for run in _records(instance)}
    leftovers = [run for run in logged if run not in known and history.is_old(run, cutoff)]
    emptied = [run for run in plan.emptied if run in logged]
    events, ticks = history.runless(cutoff), history.ticks(cutoff)
    gone = {*plan.deleted, *emptied, *leftovers}
    not_compacted: str | None = "nothing was removed"
    if not dry_run and (plan.deleted or gone or events or ticks):
        report(f"removing {len(plan.deleted):,} runs and {ticks:,} ticks")
        # A run goes last: until then the next call finds it again.
        history.delete_events(plan.deleted)
        history.delete_runs(plan.deleted)
        history.delete_logs([*emptied, *leftovers])
        history.delete_runless(events, cutoff)
        history.delete_ticks(cutoff)
        report("giving the space back to the disk")
        not_compacted = "runs are under way" if plan.under_way else history.compact()
    return Pruned(
        runs=len(plan.deleted),
        emptied=len(emptied),
        log_bytes=sum(logged.get(run, 0) for run in gone),
        events=len(events),
        ticks=ticks,
        before=before,
        after=before if dry_run else history.size(),
        kept=plan.kept,
        not_compacted=not_compacted,
    )


def _history(instance: dg.DagsterInstance) -> History:
    if instance_files.has_files(instance):
        return instance_files.InstanceFiles(instance)
    if instance_database.has_database(instance):
        return instance_database.InstanceDatabase(instance)
    raise OtherStorage(
        "the history of this instance is neither in SQLite files nor in Postgres: use the tools of "
        "its storage"
    )


def _plan(instance: dg.DagsterInstance, history: History, cutoff: float, keep_runs: int) -> _Plan:
    backfills = {
        backfill.backfill_id
        for backfill in instance.get_backfills()
        if backfill.status.value in _BACKFILLS_UNDER_WAY
    }
    deleted, emptied = [], []
    kept, under_way = 0, False
    # A run that ends from here on is not among the records that are looked at.
    records = list(_records(instance))
    newest = history.newest_runs()
    for record in records:
        run = record.dagster_run
        if run.status not in _ENDED:
            kept, under_way = kept + 1, True
        elif run.tags.get(_BACKFILL) in backfills or _is_recent(record, cutoff, keep_runs - kept):
            kept += 1
        elif run.run_id not in newest:
            deleted.append(run.run_id)
        else:
            kept += 1
            if run.status is not dg.DagsterRunStatus.FAILURE:
                emptied.append(run.run_id)
    return _Plan(deleted, emptied, kept, under_way)


def _is_recent(record: dg.RunRecord, cutoff: float, left: int) -> bool:
    ended = record.end_time or record.update_timestamp.timestamp()
    return left > 0 and ended >= cutoff


def _records(instance: dg.DagsterInstance) -> Iterator[dg.RunRecord]:
    """All runs, the newest first."""
    cursor = None
    while page := instance.get_run_records(limit=_PAGE, cursor=cursor):
        yield from page
        cursor = page[-1].dagster_run.run_id
