"""SYNTH in Dagster: raw Parquet, Harmony shards and Megatron datasets."""

from assets.family import Family
from assets.synth.assets import ASSETS, CHECKS
from assets.synth.choices import CHOICES
from assets.synth.default_builds import BUILDS
from assets.synth.drops import available
from assets.synth.inbox import INBOXES
from resources import CorporaHub

FAMILY = Family(
    assets=ASSETS,
    checks=CHECKS,
    inboxes=INBOXES,
    hubs={"synth": CorporaHub()},
    available=available,
    builds=BUILDS,
    choices=CHOICES,
)
