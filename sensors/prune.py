"""Which runs of the instance stay: their removal, and the schedule that bounds the history."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import dagster as dg
from pydantic import Field

from assets.checking import arrivals
from assets.checking.rules import owners_of_checks
from assets.versions import newest_records

KEEP_DAYS: Final = 30
KEEP_RUNS: Final = 1000
_DAY: Final = 86_400.0
_BACKFILL: Final = "dagster/backfill"
_BACKFILLS_UNDER_WAY: Final = ("REQUESTED", "CANCELING", "FAILING")


def prune(
    instance: dg.DagsterInstance,
    keep_days: int = KEEP_DAYS,
    keep_runs: int = KEEP_RUNS,
    *,
    dry_run: bool = False,
) -> tuple[int, int]:
    """Remove runs that are old or too many; returns how many, and how many stay.

    keep_days: what ended in so many days stays.
    keep_runs: but no more than so many runs, the newest ones.
    dry_run: only count; default False.

    These stay, however old they are: runs that have not ended; runs of a backfill that is under
    way; the newest run that materialized, observed, planned or checked something, since a run
    takes the state of its partitions with it. Of such a run the log is removed, unless it failed.
    """
    cutoff = time.time() - keep_days * _DAY
    # A run that ends from here on is not among the records that are looked at.
    records, newest, kept = instance.get_run_records(), _newest_runs(instance), 0
    backfills = {
        backfill.backfill_id
        for backfill in instance.get_backfills()
        if backfill.status.value in _BACKFILLS_UNDER_WAY
    }
    for record in records:
        run = record.dagster_run
        ended = record.end_time or record.update_timestamp.timestamp()
        is_recent = kept < keep_runs and ended >= cutoff
        stays = not run.is_finished or is_recent or run.tags.get(_BACKFILL) in backfills
        kept += stays or run.run_id in newest
        if stays or dry_run:
            continue
        if run.run_id not in newest:
            instance.delete_run(run.run_id)
        elif run.is_failure:
            continue
        _remove_log(instance, run.run_id)
    return len(records) - kept, kept


def _newest_runs(instance: dg.DagsterInstance) -> set[str | None]:
    """The runs that pages show assets, partitions and checks by."""
    storage = instance.event_log_storage
    checks = list(owners_of_checks())
    checks += [dg.AssetCheckKey(asset, arrivals.NAME) for asset in instance.get_asset_keys()]
    checked = storage.get_latest_asset_check_execution_by_key(checks)
    runs: set[str | None] = {record.run_id for record in checked.values()}
    kinds = (
        (dg.DagsterEventType.ASSET_MATERIALIZATION, instance.fetch_materializations),
        (dg.DagsterEventType.ASSET_OBSERVATION, instance.fetch_observations),
    )
    for known in instance.get_asset_records():
        asset = known.asset_entry.asset_key
        runs.add(known.asset_entry.last_run_id)
        # Planned, and not materialized since: by these a page shows that a partition failed.
        planned = (
            storage.get_latest_asset_partition_materialization_attempts_without_materializations
        )
        runs |= {run for run, _ in planned(asset).values()}
        for kind, fetch in kinds:
            runs |= {record.run_id for record in fetch(asset, limit=1).records}
            newest = instance.get_latest_storage_id_by_partition(asset, kind)
            of_partitions = newest_records(instance, asset, newest, kind)
            runs |= {record.run_id for record in of_partitions.values()}
    return runs


def _remove_log(instance: dg.DagsterInstance, run: str) -> None:
    """Remove what a run printed, and its own database, which Dagster leaves on the disk."""
    with suppress(FileNotFoundError):  # of another prune at the same time
        instance.compute_log_manager.delete_logs(prefix=[run])
    if path_of := getattr(instance.event_log_storage, "path_for_shard", None):
        for suffix in ("-wal", "-shm", ""):
            Path(f"{path_of(run)}{suffix}").unlink(missing_ok=True)


class PruneRun(dg.Config):
    """How much of the history stays."""

    keep_days: int = Field(
        default=KEEP_DAYS, ge=1, description="Runs of so many days stay. Default 30."
    )
    keep_runs: int = Field(
        default=KEEP_RUNS,
        ge=0,
        description="But no more than so many runs, the newest ones. Default 1000.",
    )


@dg.op(description="Removes old runs, and says how many.")
def prune_history(context: dg.OpExecutionContext, config: PruneRun) -> None:
    """Prune the instance of the run; the run itself is under way, and stays."""
    removed, kept = prune(context.instance, config.keep_days, config.keep_runs)
    context.log.info(f"removed {removed:,} runs; {kept:,} stay")


@dg.job(
    name="prune",
    description="Removes old runs, as `gristmill prune`; the newest of each partition stays.",
)
def prune_job() -> None:
    """The one op of the job."""
    prune_history()


prune_nightly = dg.ScheduleDefinition(
    name="prune_nightly",
    job=prune_job,
    cron_schedule="30 3 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        f"Every night at 03:30 UTC: runs of {KEEP_DAYS} days stay, and no more than "
        f"{KEEP_RUNS:,}. On until you turn it off; `gristmill prune` does the same "
        "whenever you call it."
    ),
)
