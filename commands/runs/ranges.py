"""Which partitions go into one run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import dagster as dg

PARTITION: Final = "dagster/partition"
RANGE: Final = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
"""Tags of a run, by which Dagster knows its partitions."""

MOST: Final = 100
"""Most partitions of a run, where the asset's policy names no number."""


def most_together(policy: dg.BackfillPolicy | None) -> int:
    """Returns how many partitions of an asset one run may have."""
    return 1 if policy is None else min(policy.max_partitions_per_run or MOST, MOST)


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
