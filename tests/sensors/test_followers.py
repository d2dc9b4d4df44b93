"""The sensor `followers`: the assets and checks that it evaluates."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from assets.family import Family
from assets.macroxue.assets import pool_members_current
from definitions import build_defs
from sensors.followers import followers_sensor


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


def test_its_target_is_every_asset_and_check_with_a_condition_of_any_family():
    repository = build_defs().get_repository_def()
    sensor = repository.get_sensor_def("followers")
    graph = repository.asset_graph
    with_condition = {
        key for key in graph.asset_check_keys if graph.get(key).automation_condition is not None
    }
    assert sensor.asset_selection.resolve(graph) == {
        key for key in graph.get_all_asset_keys() if graph.get(key).automation_condition is not None
    }
    assert with_condition == {pool_members_current.check_key}
    assert with_condition <= sensor.asset_selection.resolve_checks(graph)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_an_asset_and_a_check_of_another_family_are_followed():
    @dg.asset(automation_condition=dg.AutomationCondition.eager())
    def follows() -> None: ...

    @dg.asset
    def does_not_follow() -> None: ...

    @dg.asset_check(
        asset=does_not_follow, automation_condition=dg.AutomationCondition.any_deps_updated()
    )
    def followed_check() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    @dg.asset_check(asset=does_not_follow)
    def other_check() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    assets, checks = [follows, does_not_follow], [followed_check, other_check]
    sensor = followers_sensor([Family(assets=assets[:1]), Family(assets[1:], checks)])
    graph = dg.Definitions(assets=assets, asset_checks=checks).resolve_asset_graph()
    assert sensor.asset_selection.resolve(graph) == {follows.key}
    assert sensor.asset_selection.resolve_checks(graph) == {followed_check.check_key}
