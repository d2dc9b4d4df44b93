"""Inbox: a folder below `drops/`, and the assets that are built from its drops.

`gristmill/inbox.py` decides when a drop has arrived; the sensor is `sensors/raw_drops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from gristmill import families
from gristmill.contract import GristmillError
from gristmill.inbox import FOLDER, Arrival, Shape
from gristmill.settings.tables import drop_refusal
from gristmill.untrusted.files import REFUSE_LINKS
from resources import Lake

# The result of `dg.define_asset_job`; Dagster has no public name for its type.
UnresolvedJob = Any


@dataclass(frozen=True)
class Inbox:
    """One folder of raw drops, and the runs that a drop in it starts.

    folder: name of the folder below `drops/`; the sensor is called `<folder>_drops`.
    raw_drop: key of the external asset for the drops. An arrival is reported as a
        materialization of it, a refused drop as an observation.
    partitions: the partitions that are built from a drop. Dynamic: the partition with the drop's
        key, which an arrival adds. Time: the partition with the drop's key. Static: all of them.
    targets: the assets that a drop's runs build, one run for each partition.
    refuse: takes the path of a settled drop; returns why it cannot be built, or None. Its
        settings are checked before: see `refusal`.
    shape: a drop is a folder (default), or a file with one of certain endings.
    job: the job that the runs belong to; default None: a run over `targets`.
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
        """Name of the dynamic partitions; None if the partitions are static or of time."""
        if isinstance(self.partitions, dg.DynamicPartitionsDefinition):
            return self.partitions.name
        return None

    def refusal(self, drop: Path) -> str | None:
        """Returns why a settled drop is not built: its settings are wrong, or `refuse` says so.

        drop: path of the drop in the inbox.

        Returns None if it can be built. Raises OSError where the drop cannot be read.
        """
        try:
            links = Lake(data_root=str(drop.parents[2])).link_rule()
        except GristmillError:
            links = REFUSE_LINKS  # a wrong file of the data root refuses no drop
        return drop_refusal(drop, families.tables(), links) or self.refuse(drop)

    def new_keys(self, instance: dg.DagsterInstance, arrivals: Iterable[Arrival]) -> list[str]:
        """Returns the keys of arrivals that are not yet dynamic partitions of the instance.

        instance: the Dagster instance to ask.
        arrivals: drops that have settled; the order of the keys is theirs.
        """
        if self.dynamic is None:
            return []
        known = set(instance.get_dynamic_partitions(self.dynamic))
        return [arrival.key for arrival in arrivals if arrival.key not in known]

    def partitions_of(self, drop: str) -> Collection[str]:
        """Returns the keys of the partitions that are built from a drop.

        drop: key of the drop.
        """
        if isinstance(self.partitions, dg.StaticPartitionsDefinition):
            return self.partitions.get_partition_keys()
        return [drop]
