"""The schedule that bounds the history of the instance; it is on until someone turns it off."""

import dagster as dg
from pydantic import Field

from assets.history import retention


class PruneRun(dg.Config):
    """How much of the history stays."""

    keep_days: int = Field(
        default=retention.KEEP_DAYS,
        description="Runs and ticks of so many days stay; 1 to 36,500. Default 30.",
    )
    keep_runs: int = Field(
        default=retention.KEEP_RUNS,
        description="But no more than so many runs, the newest; 0 to 10,000,000. Default 1000.",
    )


@dg.op(description="Removes old runs, logs and ticks, and says how many.")
def prune_history(context: dg.OpExecutionContext, config: PruneRun) -> None:
    """Prune the instance of the run; the run itself is under way, and stays."""
    least, days, runs = retention.LEAST_DAYS, retention.MOST_DAYS, retention.MOST_RUNS
    if not (least <= config.keep_days <= days and 0 <= config.keep_runs <= runs):
        raise dg.Failure(
            f"keep_days must be from {least} to {days:,} and keep_runs from 0 to {runs:,}, not "
            f"{config.keep_days} and {config.keep_runs}",
            allow_retries=False,
        )
    pruned = retention.prune(context.instance, config.keep_days, config.keep_runs)
    context.log.info(
        f"removed {pruned.runs:,} runs, the logs of {pruned.emptied:,} more and {pruned.ticks:,} "
        f"ticks: {pruned.before / 1e6:,.1f} MB before, {pruned.after / 1e6:,.1f} MB after"
    )


@dg.job(
    name="prune",
    description=(
        "Removes old runs, logs and ticks of the instance, as `gristmill prune` does. Artifacts "
        "stay, and the newest run of each partition."
    ),
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
        f"Every night at 03:30 UTC: runs and ticks of {retention.KEEP_DAYS} days stay, and of the "
        f"runs no more than {retention.KEEP_RUNS:,}. On until you turn it off; `gristmill prune` "
        "does the same whenever you call it."
    ),
)
