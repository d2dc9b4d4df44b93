"""Which checks and assets follow others without being asked."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from assets.macroxue.assets import pool_members_current
from definitions import build_defs


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("macroxue_drops", ["d1"])
        made.add_dynamic_partitions("macroxue_pools", ["p"])
        yield made


def test_the_pools_check_is_evaluated_when_a_pack_was_built(instance):
    selection = dg.AssetSelection.checks(pool_members_current)

    def tick(cursor: Any = None) -> Any:
        return dg.evaluate_automation_conditions(
            build_defs(), instance, asset_selection=selection, cursor=cursor
        )

    first = tick()
    assert first.total_requested == 0
    instance.report_runless_asset_event(
        dg.AssetMaterialization(dg.AssetKey(["macroxue", "pack"]), partition="d1")
    )
    second = tick(first.cursor)
    assert second.total_requested == 1
    assert tick(second.cursor).total_requested == 0


def test_one_sensor_follows_manifests_and_the_pools_check():
    sensor = build_defs().get_repository_def().get_sensor_def("followers")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
