"""The newest answer to a drop: what was built, or a later report that it is not built."""

from __future__ import annotations

import dagster as dg

from assets.publishing import NOT_BUILT
from sensors.answers import newest_answers

PARTITIONS = dg.DynamicPartitionsDefinition(name="toy_drops")


@dg.asset(key=["toy", "pack"], partitions_def=PARTITIONS)
def pack() -> None: ...


@dg.asset(key=["toy", "values"], deps=[pack], partitions_def=PARTITIONS)
def values() -> None: ...


def number(instance: dg.DagsterInstance, kind: dg.DagsterEventType, key: str) -> int:
    return instance.get_latest_storage_id_by_partition(pack.key, kind, {key})[key]


def test_an_answer_is_what_was_built_or_a_later_report_that_it_is_not(
    instance: dg.DagsterInstance,
) -> None:
    keys = ["built", "then_refused", "refused", "noted", "then_built"]
    for key in ("built", "then_refused"):
        instance.report_runless_asset_event(dg.AssetMaterialization(pack.key, partition=key))
    for key in ("then_refused", "refused", "noted", "then_built"):
        status = {"status": "looked at" if key == "noted" else NOT_BUILT}
        report = dg.AssetObservation(pack.key, partition=key, metadata=status)
        instance.report_runless_asset_event(report)
    instance.report_runless_asset_event(dg.AssetMaterialization(pack.key, partition="then_built"))
    seen = dg.DagsterEventType.ASSET_OBSERVATION
    made = dg.DagsterEventType.ASSET_MATERIALIZATION
    reports = {key: number(instance, seen, key) for key in ("then_refused", "refused")}
    builds = {key: number(instance, made, key) for key in ("built", "then_built")}
    answers = newest_answers(instance, [pack, values], [*keys, "never_seen"])
    # What is built from a partition that is not built is skipped, and has that answer.
    assert answers == {pack.key: builds | reports, values.key: reports}
    assert newest_answers(instance, [pack], ["noted"]) == {pack.key: {}}
