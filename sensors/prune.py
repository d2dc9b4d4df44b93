"""The schedule that bounds the history of the instance; it is on until someone turns it off."""

import dagster as dg
from pydantic import Field

from assets.history import retention


class PruneRun(dg.Config):
    """How much of the history stays."""

    keep_days: int = Field(
        default=retention.KEEP_DAYS, ge=1, description="Runs of so many days stay. Default 30."
    )
    keep_runs: int = Field(
        default=retention.KEEP_RUNS,
        ge=0,
        description="But no more than so many runs, the newest ones. Default 1000.",
    )


@dg.op(description="Removes old runs, and says how many.")
def prune_history(context: dg.OpExecutionContext, config: PruneRun) -> None:
    """Prune the instance of the run; the run itself is under way, and stays."""
    removed, kept = retention.prune(context.instance, config.keep_days, config.keep_runs)
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
        f"Every night at 03:30 UTC: runs of {retention.KEEP_DAYS} days stay, and no more than "
        f"{retention.KEEP_RUNS:,}. On until you turn it off; `gristmill prune` does the same "
        "whenever you call it."
    ),
)
