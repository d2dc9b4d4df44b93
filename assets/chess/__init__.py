"""Chess in Dagster: elite months, validated games, datasets, splices and caches."""

from assets.chess.assets import ASSETS, CHECKS, RESOURCES, chess_month
from assets.chess.choices import CHOICES
from assets.chess.default_builds import BUILDS
from assets.chess.drops import available
from assets.chess.inbox import INBOXES
from assets.chess.schedules import chess_elite_months
from assets.family import Family

FAMILY = Family(
    assets=ASSETS,
    checks=CHECKS,
    jobs=[chess_month],
    inboxes=INBOXES,
    schedules=[chess_elite_months],
    resources=RESOURCES,
    available=available,
    builds=BUILDS,
    choices=CHOICES,
)
