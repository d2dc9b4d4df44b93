"""Schedules: work that a calendar starts, where no drop and no person does."""

from datetime import UTC, datetime

import dagster as dg

from assets.chess import assets
from gristmill.chess.raw.months import due_months

# A month is complete once all of these have it; legacy splices are optional.
_COMPLETE = [assets.elite_pgn, assets.valid_games, assets.game_dataset, assets.splice_cache]


@dg.schedule(
    name="chess_elite_months",
    job=assets.chess_month,
    cron_schedule="0 4 * * 1",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description=(
        "Every Monday: at most three of the last twelve months that are not there yet, since "
        "archives appear up to three months late. A month that is not published yet is asked for "
        "again another week. Off until it is switched on, for it downloads."
    ),
)
def chess_elite_months(
    context: dg.ScheduleEvaluationContext,
) -> list[dg.RunRequest] | dg.SkipReason:
    """One run for each month that is due."""
    tick = (context.scheduled_execution_time or datetime.now(UTC)).date()
    have = [context.instance.get_materialized_partitions(asset.key) for asset in _COMPLETE]
    months = due_months(tick, set.intersection(*have))
    if not months:
        return dg.SkipReason("the last twelve months are there")
    return [dg.RunRequest(run_key=f"{month}:{tick}", partition_key=month) for month in months]
