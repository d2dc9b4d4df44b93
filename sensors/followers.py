"""The sensor that lets assets and checks over all partitions follow them, by their conditions."""

from collections.abc import Iterable

import dagster as dg

from sensors.raw_drops import Inbox

INTERVAL_SECONDS = 30


def followers_sensor(
    inboxes: Iterable[Inbox], checks: Iterable[dg.AssetChecksDefinition]
) -> dg.AutomationConditionSensorDefinition:
    """Evaluates the automation conditions of the followers of all inboxes, and of `checks`."""
    keys = {asset.key for inbox in inboxes for asset in inbox.followers}
    return dg.AutomationConditionSensorDefinition(
        name="followers",
        target=dg.AssetSelection.assets(*keys) | dg.AssetSelection.checks(*checks),
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Builds manifests anew once all their shards stand and none of them is under way, and "
            "checks pools when a pack was built."
        ),
    )
