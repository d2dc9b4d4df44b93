"""The roof: the one place where assets, checks, sensors and resources come together."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets import chess, macroxue, synth, tokenizers
from resources import Lake
from sensors.calendars import SCHEDULES
from sensors.followers import followers_sensor
from sensors.inboxes import INBOXES
from sensors.raw_drops import raw_drop_sensor

WINGS = (tokenizers, macroxue, synth, chess)


def build_defs(resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """All definitions of the code location.

    resources: take the place of those of the same name, for tests.
    """
    return dg.Definitions(
        assets=[asset for wing in WINGS for asset in wing.ASSETS],
        asset_checks=[check for wing in WINGS for check in wing.CHECKS],
        jobs=[job for wing in WINGS for job in getattr(wing, "JOBS", [])],
        sensors=[
            *(raw_drop_sensor(inbox) for inbox in INBOXES),
            followers_sensor(INBOXES, [macroxue.pool_members_current]),
        ],
        schedules=SCHEDULES,
        resources={"lake": Lake(), **chess.RESOURCES, **(resources or {})},
        # Starting a process costs more than most partitions take; heavy assets
        # bring worker processes of their own.
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    return build_defs()
