"""Chess in Dagster: elite months, validated games, datasets, splices and caches."""

from datetime import UTC, datetime
from typing import Final

import dagster as dg

from assets import choices
from assets.family import family_of
from assets.inbox import add_partitions
from gristmill.chess.config import COLLECTIONS, MonthConfig
from gristmill.chess.raw.pgn_text import FIRST_MONTH, due_months
from gristmill.lazy_exports import call
from resources import EliteArchive

chess_months: Final = dg.MonthlyPartitionsDefinition(start_date=FIRST_MONTH, fmt="%Y-%m")
"""Months from the first archive on, each from its end in UTC; the keys are `YYYY-MM`."""


# A month is complete once all of these have it; legacy splices are optional.
_NAMES = ("elite_pgn", "valid_games", "game_dataset", "splice_cache")
_COMPLETE = [dg.AssetKey(["chess", name]) for name in _NAMES]

chess_month = dg.define_asset_job(
    "chess_month",
    selection=[*_COMPLETE, dg.AssetKey(["chess", "splice_dataset"])],
    description=(
        "One month from the archive to training data. All choices for it are in one place: "
        "`resources: chess_month: config:` in the launchpad, or `[chess.month]` in gristmill.toml."
    ),
)


@dg.schedule(
    name="chess_elite_months",
    job=chess_month,
    cron_schedule="0 4 * * 1",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description=(
        "Every Monday: builds at most three of the last twelve months that are not built yet. "
        "Archives appear up to three months late; a month that is not published yet is requested "
        "again in another week. Off by default, since it downloads."
    ),
)
def chess_elite_months(
    context: dg.ScheduleEvaluationContext,
) -> list[dg.RunRequest] | dg.SkipReason:
    """Returns one run for each month that is due."""
    tick = (context.scheduled_execution_time or datetime.now(UTC)).date()
    materialized = [context.instance.get_materialized_partitions(asset) for asset in _COMPLETE]
    months = due_months(tick, set.intersection(*materialized))
    if not months:
        return dg.SkipReason("the last twelve months are built")
    add_partitions(context.instance, COLLECTIONS, months)
    return [dg.RunRequest(run_key=f"{month}:{tick}", partition_key=month) for month in months]


# One config for all assets of a run, so that they agree about the month.
ChessMonth = choices.launchpad(MonthConfig, dg.ConfigurableResource)

FAMILY = family_of(
    "chess",
    inboxes=lambda _: {
        "chess": {
            "job": chess_month,
            "built_in": lambda: {COLLECTIONS: chess_months.get_partition_keys()},
        }
    },
    jobs=[chess_month],
    schedules=[chess_elite_months],
    resources={"elite_archive": EliteArchive(), "chess_month": ChessMonth()},
    available=call("gristmill.chess.raw.drops:available"),
)
