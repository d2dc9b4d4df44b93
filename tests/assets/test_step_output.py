"""The output of a step of several partitions, and what Dagster reports for it."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from assets import step_output
from assets.versions import DATA_VERSION

KEYS = ["a", "b", "c"]
partitions = dg.StaticPartitionsDefinition(KEYS)
BATCH = dg.BackfillPolicy.single_run()
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


@dg.asset(partitions_def=partitions, backfill_policy=BATCH, output_required=False)
def many(context: dg.AssetExecutionContext) -> Iterator[Any]:
    events = [
        dg.AssetMaterialization(
            "many", partition=key, tags={DATA_VERSION: f"version of {key}"}, metadata={"fact": key}
        )
        for key in context.partition_keys
    ]
    yield from events
    yield from step_output.step_output(context, events)


@dg.asset(partitions_def=partitions, backfill_policy=BATCH, deps=[many])
def after(context: dg.AssetExecutionContext) -> None:
    context.log.info("built after many")


def seen(instance: dg.DagsterInstance) -> list[tuple[str | None, str | None, bool]]:
    """Partition, data version, and whether it has facts, of each event, in their order."""
    tags = dict(zip(RANGE, (KEYS[0], KEYS[-1]), strict=True))
    result = dg.materialize([many, after], instance=instance, tags=tags)
    assert instance.get_materialized_partitions(after.key) == set(KEYS)
    logs = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    found = [entry.asset_materialization for entry in logs]
    return [
        (event.partition, (event.tags or {}).get(DATA_VERSION), "fact" in event.metadata)
        for event in found
        if event is not None and event.asset_key == many.key
    ]


EACH = [(key, f"version of {key}", True) for key in KEYS]


def test_this_release_of_dagster_reports_nothing_for_the_output(
    instance: dg.DagsterInstance,
) -> None:
    """If this fails, Dagster has another way to leave the events of an output out: find it."""
    assert seen(instance) == EACH


def test_where_it_reports_the_output_the_events_of_the_partitions_come_last(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_output, "UNREPORTED", "unknown")
    found = seen(instance)
    assert (found[:3], found[6:]) == (EACH, EACH)
    assert len({version for _, version, _ in found[3:6]}) == 1
