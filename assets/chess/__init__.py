"""Chess in Dagster: elite months, validated games, datasets, splices and caches."""

import dagster as dg

from assets import choices
from assets.chess.partitions import chess_months
from assets.chess.schedules import chess_elite_months, chess_month
from assets.family import family_of
from gristmill.chess.config import MonthConfig
from gristmill.chess.raw.archive_config import COLLECTIONS
from gristmill.lazy_exports import call
from resources import EliteArchive

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
