"""The output of a step of several partitions, which steps downstream in its run wait for.

For an output Dagster reports every partition of the run as materialized, all with one data version
and without a fact of ours. The step has reported each partition by then, as soon as it was
published (see `publishing.py`), so the output is one that Dagster reports nothing for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import dagster as dg

from assets.versions import DATA_VERSION

UNREPORTED: Final = "__source_asset_observation__"
"""Metadata of an output that Dagster reports no asset for; it has no public name.

`tests/assets/test_step_output.py` fails where a release of Dagster does without it: the events of
the partitions are then reported once more.
"""


def step_output(
    context: dg.AssetExecutionContext, events: Sequence[dg.AssetMaterialization]
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    """Yields the output of a step, and again the events that came before it where it hides them."""
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
