"""2048 in Dagster: raw self-play drops, packs, values and pools."""

from assets.family import Family
from assets.macroxue.assets import ASSETS, CHECKS
from assets.macroxue.choices import CHOICES
from assets.macroxue.default_builds import BUILDS
from assets.macroxue.inbox import INBOXES

FAMILY = Family(assets=ASSETS, checks=CHECKS, inboxes=INBOXES, builds=BUILDS, choices=CHOICES)
