"""The sensor `followers`: the assets that it evaluates."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from assets.family import Family
from definitions import build_defs
from sensors.followers import followers_sensor


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("macroxue_drops", ["d1"])
        made.add_dynamic_partitions("macroxue_pools", ["p"])
        yield made


def test_a_pack_that_was_built_starts_no_run_of_a_check(instance):
    """The sensor `check_states` looks at the pools, without a run."""

    def tick(cursor: Any = None) -> Any:
        return dg.evaluate_automation_conditions(build_defs(), instance, cursor=cursor)

    first = tick()
    assert first.total_requested == 0
    instance.report_runless_asset_event(
        dg.AssetMaterialization(dg.AssetKey(["macroxue", "pack"]), partition="d1")
    )
    assert tick(first.cursor).total_requested == 0


def test_its_target_is_every_asset_with_a_condition_of_any_family_and_no_check_has_one():
    repository = build_defs().get_repository_def()
    sensor = repository.get_sensor_def("followers")
    graph = repository.asset_graph
    assert sensor.asset_selection.resolve(graph) == {
        key for key in graph.get_all_asset_keys() if graph.get(key).automation_condition is not None
    }
    assert not any(graph.get(key).automation_condition for key in graph.asset_check_keys)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_an_asset_of_another_family_is_followed():
    @dg.asset(automation_condition=dg.AutomationCondition.eager())
    def follows() -> None: ...

    @dg.asset
    def does_not_follow() -> None: ...

    assets = [follows, does_not_follow]
    sensor = followers_sensor([Family(assets=assets[:1]), Family(assets[1:])])
    graph = dg.Definitions(assets=assets).resolve_asset_graph()
    assert sensor.asset_selection.resolve(graph) == {follows.key}
