"""The sensor `followers`: evaluates the automation conditions of assets."""

from collections.abc import Iterable

import dagster as dg

from assets.family import Family

INTERVAL_SECONDS = 30


def followers_sensor(families: Iterable[Family]) -> dg.AutomationConditionSensorDefinition:
    """Returns the sensor that evaluates the assets with an automation condition."""
    keys = {
        spec.key
        for family in families
        for asset in family.assets
        if isinstance(asset, dg.AssetsDefinition)
        for spec in asset.specs
        if spec.automation_condition is not None
    }
    return dg.AutomationConditionSensorDefinition(
        name="followers",
        target=dg.AssetSelection.assets(*keys),
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Rebuilds a manifest when all its shards are published and none is being built."
        ),
    )
