"""Drops that feed fixed partitions: what the sensors of SYNTH ask for, tick by tick."""

import shutil
from typing import Any

import dagster as dg
import pytest

import definitions
from assets.synth import FAMILY
from definitions import followers_sensor
from gristmill.synth.raw import NUMBERS
from gristmill.synth.samples import write_drop
from resources import Lake
from tests.assets.helpers import TOKENIZERS, built, materialized
from tests.sensors.ticks import Ticks


@pytest.fixture
def tick(instance: dg.DagsterInstance, lake: Lake) -> Any:
    ticks = {inbox.folder: Ticks(inbox, instance, lake) for inbox in FAMILY.inboxes}
    return lambda inbox: ticks[inbox]()


def test_a_settled_drop_starts_one_run_a_shard(tick, lake):
    write_drop(lake.inbox("synth") / "first", files=4, rows=3)
    assert tick("synth").run_requests == []
    result = tick("synth")
    assert [request.partition_key for request in result.run_requests] == list(NUMBERS)
    assert len({request.run_key for request in result.run_requests}) == 4
    assert not result.dynamic_partitions_requests
    reported = {
        (type(event).__name__, event.partition) for event in result.asset_events if event.partition
    }
    kinds = ("AssetObservation", "AssetMaterialization")
    assert reported == {(kind, number) for kind in kinds for number in NUMBERS}
    assert {event.asset_key for event in result.asset_events} == {dg.AssetKey(["synth", "raw"])}
    assert tick("synth").run_requests == []


def test_a_drop_waits_until_it_is_complete(tick, lake):
    folder = lake.inbox("synth") / "first"
    write_drop(folder, files=4, rows=3, done=False)
    tick("synth")
    result = tick("synth")
    assert result.run_requests == []
    assert "4 Parquet files of 500" in str(result.skip_reason)
    (folder / ".done").touch()
    assert tick("synth").run_requests == []
    assert len(tick("synth").run_requests) == 4


def test_a_download_under_way_is_not_looked_into(tick, lake):
    folder = lake.inbox("synth") / "first"
    write_drop(folder, files=4, rows=3)
    (folder / ".synth_005.parquet.0123456789abcdef.partial").write_bytes(b"PAR1")
    for _ in range(3):
        assert tick("synth").run_requests == []


def test_a_second_drop_waits_until_it_is_named(tick, lake):
    write_drop(lake.inbox("synth") / "first", files=4, rows=3)
    tick("synth")
    assert len(tick("synth").run_requests) == 4
    write_drop(lake.inbox("synth") / "second", files=4, rows=3, seed=2)
    tick("synth")
    assert "several drops are complete" in str(tick("synth").skip_reason)
    (lake.root / "gristmill.toml").write_text('[synth.harmony]\ndrop = "synth/second"\n')
    result = tick("synth")
    assert len(result.run_requests) == 4
    assert all(request.run_key.startswith("second:") for request in result.run_requests)


@pytest.mark.slow
def test_the_manifests_follow_their_shards(instance, lake, vocabulary_root):
    """Nothing while shards are missing, the Harmony manifest once they stand, then the others."""
    sensor = followers_sensor(definitions.families())
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    write_drop(lake.inbox("synth") / "first", files=4, rows=3)
    shutil.copytree(vocabulary_root / "drops/tokenizers", lake.root / "drops/tokenizers")
    defs = definitions.build_defs({"lake": lake})
    cursor = None

    def run(asset: dg.AssetsDefinition, key: str | None = None) -> None:
        assets = [*TOKENIZERS, *FAMILY.assets]
        assert materialized(asset, assets, lake, instance, key).success

    def asked() -> set[str]:
        nonlocal cursor
        result = dg.evaluate_automation_conditions(defs=defs, instance=instance, cursor=cursor)
        cursor = result.cursor
        keys = [asset.key for asset in FAMILY.assets]
        return {key.to_user_string() for key in keys if result.get_num_requested(key)}

    assert asked() == set()
    run(TOKENIZERS[0])
    for number in NUMBERS[:3]:
        run(built("synth/harmony"), number)
    assert asked() == set()
    run(built("synth/harmony"), NUMBERS[3])
    assert asked() == {"synth/harmony_manifest"}
    run(built("synth/harmony_manifest"))
    assert asked() == set()
    for number in NUMBERS:
        run(built("synth/kd_shards"), number)
    assert asked() == {"synth/kd_manifest"}
    run(built("synth/kd_manifest"))
    assert asked() == set()
