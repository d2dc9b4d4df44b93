"""Inboxes: the partitions that are built from a drop."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.inbox import Inbox
from gristmill.inbox import Arrival

DYNAMIC = dg.DynamicPartitionsDefinition(name="toy_drops")
MONTHS = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")
SHARDS = dg.StaticPartitionsDefinition(["00", "01"])


def inbox(partitions: dg.PartitionsDefinition[str]) -> Inbox:
    return Inbox("toy", dg.AssetKey("raw_drop"), partitions, targets=[], refuse=lambda _: None)


def arrival(key: str) -> Arrival:
    return Arrival(key=key, path=Path(key), signature="1", run_key=key, files=1, bytes=1)


@pytest.mark.parametrize(
    ("partitions", "expected"), [(DYNAMIC, ["d1"]), (MONTHS, ["d1"]), (SHARDS, ["00", "01"])]
)
def test_a_drop_is_built_into_its_partition_or_into_every_static_one(partitions, expected):
    assert list(inbox(partitions).partitions_of("d1")) == expected


def test_only_unknown_keys_of_dynamic_partitions_are_new(instance):
    instance.add_dynamic_partitions("toy_drops", ["d1"])
    arrivals = [arrival("d2"), arrival("d1"), arrival("d0")]
    assert inbox(DYNAMIC).new_keys(instance, arrivals) == ["d2", "d0"]
    assert inbox(MONTHS).new_keys(instance, arrivals) == []
    assert (inbox(DYNAMIC).dynamic, inbox(SHARDS).dynamic) == ("toy_drops", None)
