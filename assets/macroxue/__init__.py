"""2048 in Dagster: raw self-play drops, packs, values and pools."""

from assets.family import family_of
from assets.macroxue.checks import member_checks

FAMILY = family_of("macroxue", checks=member_checks)
