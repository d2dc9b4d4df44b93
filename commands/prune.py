"""`gristmill prune`: remove what ended runs and killed builds left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import click
import dagster as dg

from assets import worker
from assets.checking.evaluations import settle_planned
from commands import dagster_private
from commands.checkout import CheckoutCommand, open_instance, say, shown
from gristmill.publish import remove
from resources import Lake
from sensors.prune import KEEP_DAYS, KEEP_RUNS
from sensors.prune import prune as prune_runs

_UNFINISHED = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@click.command(cls=CheckoutCommand, needs_data_root=False)
@click.option(
    "--keep-days",
    type=click.IntRange(min=1),
    default=KEEP_DAYS,
    show_default=True,
    help="Runs of so many days stay.",
)
@click.option(
    "--keep-runs",
    type=click.IntRange(min=0),
    default=KEEP_RUNS,
    show_default=True,
    help="But no more than so many runs, the newest ones.",
)
@click.option("--parts", is_flag=True, help="Remove finished parts of builds, too.")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
def prune(keep_days: int, keep_runs: int, parts: bool, dry_run: bool) -> None:
    """Close dead runs, remove what killed builds left, and old runs.

    After a power loss or `kill -9`, runs stay STARTED for ever and block the queue. Runs whose
    process lives do not change. Finished parts of a build stay, since the next build continues
    from them, unless --parts is given. Versions of an artifact that no link names are removed, too.

    Artifacts and drops stay, and what the UI says of each partition: its newest run is kept,
    without its log unless it failed. It may run while the instance is served, and may be stopped at
    any time.
    """
    import definitions  # noqa: F401  with the checks whose newest runs stay

    with open_instance() as instance:
        for line in chain(close_dead_runs(instance, dry_run), _clean_builds(parts, dry_run)):
            say(shown(line))
        removed, kept = prune_runs(instance, keep_days, keep_runs, dry_run=dry_run)
    verb = "would be removed" if dry_run else "removed"
    say(f"{verb}: {removed:,} runs; {kept:,} stay")


def _clean_builds(parts: bool, dry_run: bool) -> Iterator[str]:
    """Remove what killed builds left in the data root; yield a line for each."""
    for folder in remove.abandoned_slots(Lake().root):
        finished = 0 if parts else remove.finished_parts(folder)
        kept = f"; its finished parts ({finished}) stay for the next build" if finished else ""
        yield f"left by a killed build: {folder}{kept}"
        if not dry_run:
            remove.clean_slot(folder, keep_parts=not parts)
    for folder, count in remove.abandoned_versions(Lake().root):
        yield f"versions of {folder} that no link names: {count}"
        if not dry_run:
            remove.sweep_versions(folder)
    for folder, lock in remove.abandoned_history(Lake().root):
        yield f"left by a killed build: {folder}"
        if not dry_run:
            remove.clean_history(folder, lock)


def close_dead_runs(instance: dg.DagsterInstance, dry_run: bool = False) -> Iterator[str]:
    """Close unfinished runs whose process is gone, and free their places in the queue.

    Yields a line for each: the run, its status, and why it cannot be executing.
    """
    for record in instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED)):
        run = record.dagster_run
        if reason := why_dead(instance, run):
            yield f"run {run.run_id[:8]} ({run.status.value}): {reason}"
            if not dry_run:
                instance.report_run_failed(run, f"Closed: {reason}.")
                instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
                settle_planned(instance, Lake(), run.run_id)


def why_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str | None:
    """Returns why an unfinished run cannot be executing, or None if it may be."""
    if worker.CLUSTER in run.tags:
        # Its process may be on another machine, so that only the cluster knows.
        return dagster_private.gone(instance.run_launcher, run)
    running = worker.is_running(instance, run)
    if running is not None:
        return None if running else "its process is gone"
    server = run.tags.get(".dagster/grpc_info")
    if server is None:
        return "it never started a process on this machine"
    return None if worker.answers(server) else "the code server that launched it is gone"
