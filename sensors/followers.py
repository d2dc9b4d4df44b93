"""The sensor `followers`: evaluates automation conditions of assets and checks."""

from collections.abc import Iterable

import dagster as dg

from assets.family import Family

INTERVAL_SECONDS = 30


def followers_sensor(families: Iterable[Family]) -> dg.AutomationConditionSensorDefinition:
    """Returns the sensor that evaluates the assets and checks with an automation condition.

    families: the families whose assets and checks it evaluates.
    """
    families = list(families)
    keys = {
        spec.key
        for family in families
        for asset in family.assets
        if isinstance(asset, dg.AssetsDefinition)
        for spec in asset.specs
        if spec.automation_condition is not None
    }
    checks = [
        check
        for family in families
        for check in family.checks
        if any(spec.automation_condition is not None for spec in check.check_specs)
    ]
    return dg.AutomationConditionSensorDefinition(
        name="followers",
        target=dg.AssetSelection.assets(*keys) | dg.AssetSelection.checks(*checks),
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Rebuilds a manifest when all its shards are published and none is being built. "
            "Checks the pools after a pack was built."
        ),
    )
