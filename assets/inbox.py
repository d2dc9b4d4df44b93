"""The inbox of raw drops: a folder below `drops/`, and the assets that its drops start.

When a drop has arrived is decided in `gristmill/inbox.py`; the sensor is `sensors/raw_drops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from gristmill.inbox import FOLDER, Arrival, Shape

# What `dg.define_asset_job` makes; Dagster has no public name for its type.
UnresolvedJob = Any


@dataclass(frozen=True)
class Inbox:
    """One folder of raw drops, and what a drop in it starts.

    folder: name of the folder below `drops/`; the sensor is called `<folder>_drops`.
    raw_drop: key of the external asset for the drops. An arrival is reported as its
        materialization, a refused drop as its observation.
    partitions: dynamic partitions, to which an arrival adds its key; time partitions, of which an
        arrival feeds the one with its key; or static partitions, all of which it feeds.
    targets: the assets that a drop's runs build, one run for each partition.
    refuse: returns why a settled drop cannot be built, or None.
    shape: what a drop is: a folder (default), or a file with certain endings.
    job: the job that the runs belong to; None for a run over `targets`.
    """

    folder: str
    raw_drop: dg.AssetKey
    partitions: dg.PartitionsDefinition[str]
    targets: Sequence[dg.AssetsDefinition]
    refuse: Callable[[Path], str | None]
    shape: Shape = FOLDER
    job: UnresolvedJob | None = None

    @property
    def dynamic(self) -> str | None:
        """Name of the dynamic partitions, None where the keys are known beforehand."""
        if isinstance(self.partitions, dg.DynamicPartitionsDefinition):
            return self.partitions.name
        return None

    def new_keys(self, instance: dg.DagsterInstance, arrivals: Iterable[Arrival]) -> list[str]:
        """Keys of arrivals that the instance does not know yet."""
        if self.dynamic is None:
            return []
        known = set(instance.get_dynamic_partitions(self.dynamic))
        return [arrival.key for arrival in arrivals if arrival.key not in known]

    def fed_by(self, drop: str) -> Collection[str]:
        """Keys of the partitions that the drop with this key feeds."""
        if isinstance(self.partitions, dg.StaticPartitionsDefinition):
            return self.partitions.get_partition_keys()
        return [drop]
