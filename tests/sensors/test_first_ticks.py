"""What the sensors of all families do after the command line has built everything: nothing."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from definitions import build_defs
from gristmill.inbox import State
from resources import Lake
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot

TICKS = 4
"""The second one takes the drops, and the later ones compare what is built from them."""

TAKEN = {"macroxue_drops": "sample_d7", "reasoning_drops": "reveal"}
"""Drops that are taken meanwhile: without that, nothing would be requested either."""

NOT_BUILT = {
    "reasoning/gpt2_shards": 3,  # the terms of REVEAL forbid training
    "reasoning/alignment": 3,
    "reasoning/spans": 13,  # GSM8K alone has annotations of arithmetic
    "synth/ready_harmony": 4,  # the other form of the drops of the same shards
}
"""Partitions that are missing on the pages of a new instance, by asset: not one that nobody dropped
or asked for."""


@pytest.fixture
def root(sample_root: SampleRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRoot:
    copy = sample_root.copy(tmp_path)
    (copy.data / "gristmill.toml").write_text("[inbox]\nsettle_seconds = 0\n")
    monkeypatch.setenv("GRISTMILL_DATA", str(copy.data))
    monkeypatch.setenv("DAGSTER_HOME", str(copy.home))
    monkeypatch.chdir(CHECKOUT)
    return copy


def requested_by_sensors(
    instance: dg.DagsterInstance, definitions: dg.Definitions, lake: Lake
) -> dict[str, list[Any]]:
    """The runs that each sensor but `followers` requests, and the partitions that it adds."""
    repository = definitions.get_repository_def()
    found: dict[str, list[Any]] = {}
    for sensor in repository.sensor_defs:
        if isinstance(sensor, dg.AutomationConditionSensorDefinition):
            continue
        cursor = None
        found[sensor.name] = []
        for _ in range(TICKS):
            context = dg.build_sensor_context(
                instance=instance,
                cursor=cursor,
                resources={"lake": lake},
                repository_def=repository,
            )
            data = sensor.evaluate_tick(context)
            cursor = data.cursor
            found[sensor.name] += [
                (request.partition_key, request.asset_selection)
                for request in data.run_requests or []
            ]
            found[sensor.name] += [
                request.partition_keys for request in data.dynamic_partitions_requests or []
            ]
            for event in data.asset_events:
                instance.report_runless_asset_event(event)
        if sensor.name in TAKEN:
            settled = State.read(cursor).settled
            assert TAKEN[sensor.name] in settled, f"{sensor.name} took {sorted(settled)}"
    return found


@pytest.mark.slow
def test_after_everything_was_built_by_command_no_sensor_starts_a_run(root: SampleRoot) -> None:
    lake = Lake(data_root=str(root.data))
    definitions = build_defs({"lake": lake})
    graph = definitions.resolve_asset_graph()
    with dg.DagsterInstance.get() as instance:
        first = dg.evaluate_automation_conditions(definitions, instance)
        requested = requested_by_sensors(instance, definitions, lake)
        second = dg.evaluate_automation_conditions(definitions, instance, cursor=first.cursor)
        missing = {
            key.to_user_string(): len(
                {*partitions.get_partition_keys(dynamic_partitions_store=instance)}
                - instance.get_materialized_partitions(key)
            )
            for key in graph.get_all_asset_keys()
            if (partitions := graph.get(key).partitions_def) is not None
        }
    drops = [name for name in requested if name.endswith("_drops")]
    assert len(drops) >= 6
    assert not any(requested.values()), requested
    assert (first.total_requested, second.total_requested) == (0, 0)
    assert missing.pop("reasoning/qc_report") > 300, "each day but this one"
    assert {asset: count for asset, count in missing.items() if count} == NOT_BUILT
