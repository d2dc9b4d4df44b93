"""2048 in Dagster: raw self-play drops, packs, values, pools and training views."""

from functools import partial

from assets.family import family_of
from assets.macroxue.checks import member_checks
from assets.macroxue.inbox import starts_of_annotations

FAMILY = family_of(
    "macroxue",
    checks=member_checks,
    inboxes=lambda built: {"annotations": {"starts": partial(starts_of_annotations, built)}},
)
