"""The sensor that lets assets and checks over all partitions follow them, by their conditions."""

from collections.abc import Iterable

import dagster as dg

from assets.family import Family

INTERVAL_SECONDS = 30


def followers_sensor(families: Iterable[Family]) -> dg.AutomationConditionSensorDefinition:
    """Evaluates the automation conditions of all assets and checks that have one."""
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
            "Builds a manifest again once all its shards are published and none of them is being "
            "built, and checks pools after a pack was built."
        ),
    )
