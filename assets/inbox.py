"""Inbox: a folder below `drops/`, and the assets that are built from its drops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import dagster as dg

from gristmill import families
from gristmill.asset import declared
from gristmill.data_root import DataRoot
from gristmill.inbox import Arrival, Shape

# The result of `dg.define_asset_job`; Dagster has no public name for its type.
UnresolvedJob = Any

# Each further trial follows keys that another process added in the meantime.
_ADDING_TRIALS = 20


@dataclass(frozen=True)
class Start:
    """One run that a drop starts, or would start."""

    assets: Sequence[dg.AssetsDefinition]
    partition: str
    waiting: str = ""


@dataclass(frozen=True)
class Inbox:
    """One folder of raw drops, and the runs that a drop in it starts.

    folder: path of the folder below `drops/`; the sensor is called `<folder>_drops`, with `_` for
        each `/`.
    raw_drop: key of the external asset for the drops. An arrival is reported as a
        materialization of it, a refused drop as an observation.
    partitions: the partitions that are built from a drop: those that `keys_of` names. Without it
        of dynamic partitions and those of time the one with the drop's key, and all static ones.
        An arrival adds dynamic ones.
    targets: the assets that a drop's runs build; one that nobody asks for is left out.
    keys_of: takes the path of a settled drop and returns the partitions that are built from it;
        default None: see `partitions`.
    starts: for a drop that is built into partitions of other keys, or into none: takes the
        instance, the path of a settled drop and the keys of all that settled with it, and returns
        the runs. `partitions` are then those of the drops alone, and a run adds its dynamic
        partition, even one that waits. Default None: `targets`, for each partition of the drop.
    built_in: returns the keys that there are without a drop, by the name of their dynamic
        partitions; default none. One becomes a partition with a drop, with a command that asks for
        it, or where the instance has built it: pages show a partition without either as missing.
    made: takes the data root, and returns further keys of the same partitions, which what is built
        gives; default none.
    """

    folder: str
    raw_drop: dg.AssetKey
    partitions: dg.PartitionsDefinition[str]
    targets: Sequence[dg.AssetsDefinition]
    job: UnresolvedJob | None = None
    keys_of: Callable[[Path], Collection[str]] | None = None
    starts: Callable[[dg.DagsterInstance, Path, Collection[str]], Sequence[Start]] | None = None
    built_in: Callable[[], Mapping[str, Sequence[str]]] = dict
    made: Callable[[Path], Sequence[str]] = lambda _: ()

    @property
    def name(self) -> str:
        """The folder as a name in Dagster."""
        return self.folder.replace("/", "_")

    @property
    def dynamic(self) -> str | None:
        """Name of the dynamic partitions whose keys are those of drops; None for others."""
        return None if self.keys_of is not None else _dynamic(self.partitions)

    @property
    def is_by_drop(self) -> bool:
        """Whether the key of a drop is that of its partition."""
        is_static = isinstance(self.partitions, dg.StaticPartitionsDefinition)
        return self.keys_of is None and not is_static

    @property
    def named_by_drops(self) -> list[str]:
        """Names of the dynamic partitions whose keys are those of drops: to retire with a drop."""
        if self.keys_of is not None:
            return []
        own = [] if self.dynamic is None else [self.dynamic]
        return [*own, *(name for name in self.built_in() if name != self.dynamic)]

    @property
    def built_in_keys(self) -> set[str]:
        """The keys that there are without a drop."""
        return {key for keys in self.built_in().values() for key in keys}

    def added(self, partitions: Iterable[str]) -> dict[str, list[str]]:
        """Returns those of a drop's partitions that its arrival added, by their definition."""
        name = None if self.keys_of is None else _dynamic(self.partitions)
        if name is None:
            return {}
        built_in = self.built_in().get(name, ())
        return {name: [key for key in partitions if key not in built_in]}

    def starts_of_made(self, root: Path) -> list[Start]:
        """Returns what adds the keys of `made`, as for `additions`."""
        return [Start(self.targets, key) for key in self.made(root)]

    @property
    def shape(self) -> Shape:
        """What a drop is: a folder, or a file with one of certain endings."""
        return families.drop_kind(self.folder).shape

    def additions(
        self,
        instance: dg.DagsterInstance,
        arrivals: Iterable[Arrival],
        starts: Iterable[Start] = (),
    ) -> dict[str, list[str]]:
        """Returns the keys that are not yet dynamic partitions of the instance, by definition."""
        wanted: dict[str, dict[str, None]] = {}
        if built_in := self.built_in():
            # As by a version that had other definitions of these partitions.
            assets = [self.raw_drop, *(asset.key for asset in self.targets)]
            built = set[str]().union(*map(instance.get_materialized_partitions, assets))
            wanted = {
                name: dict.fromkeys(filter(built.__contains__, built_in[name])) for name in built_in
            }
        if self.dynamic is not None:
            own = wanted.setdefault(self.dynamic, {})
            own.update(dict.fromkeys(arrival.key for arrival in arrivals))
        for start in starts:
            if (name := _dynamic(start.assets[0].partitions_def)) is not None:
                wanted.setdefault(name, {})[start.partition] = None
        known = {name: set(instance.get_dynamic_partitions(name)) for name in wanted}
        new = {
            name: [key for key in keys if key not in known[name]] for name, keys in wanted.items()
        }
        return {name: keys for name, keys in new.items() if keys}

    def starts_of(
        self, instance: dg.DagsterInstance, drop: Arrival, settled: Collection[str]
    ) -> Sequence[Start]:
        """Returns the runs of a drop, those that wait for something included.

        Raises OSError where the drop cannot be read.
        """
        if self.starts is not None:
            return self.starts(instance, drop.path, settled)
        root = DataRoot(drop.path.parents[len(PurePath(self.folder).parts) + 1])
        return [
            Start([each for each in self.targets if is_asked(each.key, root, key)], key)
            for key in self.partitions_of(drop)
        ]

    def partitions_of(self, drop: Arrival) -> Collection[str]:
        """Returns the keys of the partitions that are built from a drop.

        Raises OSError where `keys_of` cannot read the drop.
        """
        if self.keys_of is not None:
            return self.keys_of(drop.path)
        return [drop.key] if self.is_by_drop else self.partitions.get_partition_keys()


def add_partitions(instance: dg.DagsterInstance, name: str, keys: Sequence[str]) -> None:
    """Add keys to dynamic partitions, those that other processes add at the same moment included.

    Dagster looks which keys are there and then inserts the others, so the slower one of two
    processes is refused by the database.
    """
    from sqlalchemy.exc import IntegrityError

    for _ in range(_ADDING_TRIALS):
        try:
            instance.add_dynamic_partitions(name, keys)
        except IntegrityError:
            continue
        return
    instance.add_dynamic_partitions(name, keys)


def is_asked(asset: dg.AssetKey, root: DataRoot, partition: str) -> bool:
    """Whether what names no partition, as a drop, builds it: see `Asset.is_asked`."""
    made = declared().get(asset.to_user_string())
    return made is None or made.is_asked(root, partition)


def _dynamic(partitions: dg.PartitionsDefinition[str] | None) -> str | None:
    return partitions.name if isinstance(partitions, dg.DynamicPartitionsDefinition) else None
