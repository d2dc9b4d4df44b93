"""The code location: collects what the families give to Dagster."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import dagster as dg

from assets import tokenizers
from assets.family import Family
from gristmill.families import FAMILIES
from resources import Lake
from sensors.followers import followers_sensor
from sensors.raw_drops import raw_drop_sensor


def families() -> Iterator[Family]:
    """The tokenizers, which several families use, then each family of `FAMILIES`."""
    yield tokenizers.FAMILY
    for name in FAMILIES:
        family = import_module(f"assets.{name}").FAMILY
        if not isinstance(family, Family):
            raise TypeError(f"assets/{name}/__init__.py: FAMILY must be a Family, not {family!r}")
        yield family


def build_defs(resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """All definitions of the code location.

    resources: replace those with the same key, for tests.
    """
    collected = list(families())
    return dg.Definitions(
        assets=[asset for family in collected for asset in family.assets],
        asset_checks=[check for family in collected for check in family.checks],
        jobs=[job for family in collected for job in family.jobs],
        sensors=[
            *(raw_drop_sensor(inbox) for family in collected for inbox in family.inboxes),
            followers_sensor(collected),
        ],
        schedules=[schedule for family in collected for schedule in family.schedules],
        resources={
            "lake": Lake(),
            **{key: value for family in collected for key, value in family.resources.items()},
            **(resources or {}),
        },
        # Starting a process costs more than most partitions take; heavy assets
        # bring worker processes of their own.
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What `dagster dev` loads."""
    return build_defs()
