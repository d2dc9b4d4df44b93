"""Runs of several partitions: which ones go into one run, and what their step puts out.

For an output Dagster reports every partition of the run as materialized, all with one data version
and without a fact of ours. The step has reported each partition by then, as soon as it was
published (see `publishing.py`), so the output is one that Dagster reports nothing for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import dagster as dg

from assets.versions import DATA_VERSION

PARTITION: Final = "dagster/partition"
RANGE: Final = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
"""Tags of a run, by which Dagster knows its partitions."""

MOST: Final = 100
"""Most partitions of a run, where the asset's policy names no number."""

UNREPORTED: Final = "__source_asset_observation__"
"""Metadata of an output that Dagster reports no asset for; it has no public name.

`tests/assets/test_ranges.py` fails where a release of Dagster does without it: the events of
the partitions are then reported once more.
"""


def most_together(policies: Iterable[dg.BackfillPolicy | None]) -> int:
    """Returns how many partitions one run of some assets may have.

    policies: of the assets; None: each partition has a run of its own.
    """
    allowed = (
        1 if policy is None else policy.max_partitions_per_run or MOST for policy in policies
    )
    return min(MOST, *allowed)


def ranges(wanted: Collection[str], known: Sequence[str], most: int) -> Iterator[list[str]]:
    """Yields the wanted partitions, those of one run together.

    wanted: partition keys, all among `known`.
    known: all partition keys of the asset, in its order. A run takes all keys from its first to
        its last one, so one that is not wanted ends a run.
    most: how many partitions a run may have.
    """
    together: list[str] = []
    for key in known:
        if together and (key not in wanted or len(together) == most):
            yield together
            together = []
        if key in wanted:
            together.append(key)
    if together:
        yield together


def tags(keys: Sequence[str | None]) -> Mapping[str, str]:
    """Returns the tags of a run of some partitions.

    keys: one key or several that follow each other; [None] for an asset without partitions.
    """
    first, last = keys[0], keys[-1]
    if first is None or last is None:
        return {}
    return {PARTITION: first} if len(keys) == 1 else dict(zip(RANGE, (first, last), strict=True))


def last_run(
    instance: dg.DagsterInstance, assets: Iterable[dg.AssetKey], partition: str
) -> dg.RunRecord | None:
    """Returns the newest run that was to build a partition; None if the instance has none."""
    planned = [
        found
        for asset in assets
        if (found := instance.get_latest_planned_materialization_info(asset, partition)) is not None
    ]
    if not planned:
        return None
    return instance.get_run_record_by_id(max(planned, key=lambda one: one.storage_id).run_id)


def step_output(
    context: dg.AssetExecutionContext, events: Sequence[dg.AssetMaterialization]
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    """Yields the output of a step, and again the events that came before it where it hides them.

    events: of all partitions of the run, which the step has yielded; at least one.
    """
    yield dg.MaterializeResult(metadata={UNREPORTED: True})
    if _is_hidden(context, events[-1]):
        yield from events


def _is_hidden(context: dg.AssetExecutionContext, event: dg.AssetMaterialization) -> bool:
    """Whether this run has reported something else of the partition since."""
    wanted = dg.AssetRecordsFilter(event.asset_key, asset_partitions=[str(event.partition)])
    records = context.instance.fetch_materializations(wanted, limit=1).records
    newest = records[0].asset_materialization if records else None
    if newest is None or records[0].run_id != context.run.run_id:
        return False
    return (newest.tags or {}).get(DATA_VERSION) != (event.tags or {})[DATA_VERSION]
