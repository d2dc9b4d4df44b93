"""Drops that feed fixed partitions: what the sensors of SYNTH ask for, tick by tick."""

from typing import Any

import dagster as dg
import pytest

from assets.synth import FAMILY
from gristmill.synth.raw import NUMBERS
from gristmill.synth.samples import write_drop
from resources import Lake
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


def test_a_download_under_way_is_not_looked_into(tick, lake):
    folder = lake.inbox("synth") / "first"
    write_drop(folder, files=4, rows=3)
    (folder / ".synth_005.parquet.0123456789abcdef.partial").write_bytes(b"PAR1")
    for _ in range(3):
        assert tick("synth").run_requests == []
