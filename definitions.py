"""The code location: the definitions of all families."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import dagster as dg

from assets.checking.arrivals import arrivals_check
from assets.family import Family, family_of, with_subjects
from gristmill.asset import Wanted, declared
from gristmill.data_root import DataRoot
from gristmill.families import FAMILIES
from gristmill.publish.build import Build
from resources import Lake
from sensors.after_runs import alerts, check_states
from sensors.prune import prune_job, prune_nightly
from sensors.raw_drops import raw_drop_sensor

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


def families() -> Iterator[Family]:
    """Yields the tokenizers, which several families use, then each family of `FAMILIES`."""
    for name in ("tokenizers", *FAMILIES):
        if find_spec(f"assets.{name}") is None:
            yield family_of(name)  # its catalog says everything
        else:
            yield import_module(f"assets.{name}").FAMILY


def build_of(asset: str, lake: DataRoot, key: str | None) -> Build | None:
    """Returns the build of a partition as a run without a config makes it.

    asset: key of the asset; one that is not declared has None.
    key: of the partition, None for an asset without partitions.
    """
    known = declared().get(asset)
    return None if known is None else known.build(Wanted(known, lake, key or ""))


def build_defs(resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """Returns all definitions of the code location.

    resources: replace the resources with the same key, for tests; default none.
    """
    collected = list(families())
    return dg.Definitions(
        assets=with_subjects(asset for family in collected for asset in family.assets),
        asset_checks=[
            *(check for family in collected for check in family.checks),
            *(arrivals_check(inbox) for family in collected for inbox in family.inboxes),
        ],
        jobs=[*(job for family in collected for job in family.jobs), prune_job],
        sensors=[
            *(raw_drop_sensor(inbox) for family in collected for inbox in family.inboxes),
            followers_sensor(collected),
            check_states,
            alerts,
        ],
        schedules=[
            *(schedule for family in collected for schedule in family.schedules),
            prune_nightly,
        ],
        resources={
            "lake": Lake(),
            **{key: value for family in collected for key, value in family.resources.items()},
            **(resources or {}),
        },
        # Starting a process costs more than building most partitions; heavy assets start
        # their own worker processes.
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """Returns the definitions that `dagster dev` loads."""
    return build_defs()
