"""Arrivals that a command reports, without a sensor."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg

from assets.macroxue.inbox import INBOXES
from commands.arrivals import register
from resources.lake import Lake
from tests.commands.drops import land

DROPS, _ = INBOXES


def reported(instance: dg.DagsterInstance) -> int:
    return len(instance.fetch_materializations(DROPS.raw_drop, limit=100).records)


def test_a_drop_becomes_a_partition_and_is_reported_once_until_it_is_replaced(
    instance: dg.DagsterInstance, data: Path
) -> None:
    land(data, "one")
    assert list(register(instance, Lake(), DROPS)) == []
    assert instance.get_dynamic_partitions("macroxue_drops") == ["one"]
    assert reported(instance) == 1
    assert list(register(instance, Lake(), DROPS)) == []
    assert reported(instance) == 1
    shutil.rmtree(data / "drops/macroxue/one")
    land(data, "one", seed=2)
    assert list(register(instance, Lake(), DROPS)) == []
    assert reported(instance) == 2


def test_a_refused_drop_is_a_line_and_no_partition(
    instance: dg.DagsterInstance, data: Path
) -> None:
    (data / "drops/macroxue/empty").mkdir()
    (line,) = register(instance, Lake(), DROPS)
    assert line.startswith("macroxue/empty: ")
    assert instance.get_dynamic_partitions("macroxue_drops") == []
    assert reported(instance) == 0
