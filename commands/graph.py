"""The graph of assets: select assets and partitions, and run them in this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import click
import dagster as dg

import definitions
from assets import choices, ranges, worker
from assets.inbox import add_partitions
from assets.publishing import REBUILD, REPLACE_DIFFERING, WAIT
from commands import dagster_private
from commands.runs.outcomes import Outcome, outcomes_of
from gristmill.asset import declared
from gristmill.run import interrupts
from gristmill.settings.fields import nearest
from gristmill.untrusted.limits import explained
from resources.lake import Lake

log = logging.getLogger(__name__)

_FAMILIES = list(definitions.families())

INBOXES = [inbox for family in _FAMILIES for inbox in family.inboxes]
"""The inboxes of all families."""

# The partitions that `--all` builds, for the assets where these are not all known ones.
_AVAILABLE = {
    key: family.available
    for family in _FAMILIES
    if family.available is not None
    for asset in family.assets
    if isinstance(asset, dg.AssetsDefinition)
    for key in asset.keys
}

# Where dependencies leave the order open, assets are built in the order of their families.
_ORDER = [
    key
    for family in _FAMILIES
    for asset in family.assets
    for key in ([asset.key] if isinstance(asset, dg.AssetSpec) else sorted(asset.keys))
]

_MOST_LISTED = 40


class Graph:
    """The project's assets, to run them in this process on an instance."""

    def __init__(self, instance: dg.DagsterInstance, lake: Lake) -> None:
        self._instance = instance
        self._lake = lake
        self._seen: dict[Callable[[Lake], Collection[str]], frozenset[str]] = {}
        self._known: dict[dg.PartitionsDefinition[str], Sequence[str]] = {}
        self._defs = definitions.build_defs()
        self._graph = self._defs.resolve_asset_graph()

    def select(self, names: Sequence[str]) -> list[dg.AssetKey]:
        """Returns the assets to build, each after those that it is built from.

        names: keys, as `macroxue/pack`; empty for every asset that can be built.

        Raises click.UsageError if a name is not the key of an asset that can be built.
        """
        ordered = [
            key
            for level in self._graph.toposorted_asset_keys_by_level
            for key in sorted(level, key=_ORDER.index)
            if self._graph.get(key).is_materializable
        ]
        wanted = {dg.AssetKey.from_user_string(name) for name in names}
        if unknown := wanted - set(ordered):
            known = ", ".join(key.to_user_string() for key in ordered)
            name = unknown.pop().to_user_string()
            close = nearest(name, [key.to_user_string() for key in ordered])
            hint = f": did you mean {close}?" if close else f"; these are: {known}"
            raise click.UsageError(f"{name} is not an asset that can be built{hint}")
        return [key for key in ordered if not names or key in wanted]

    def partitioned_by(self, definition: dg.PartitionsDefinition[str]) -> set[str]:
        """Returns the keys of the assets with these partitions, as `macroxue/pack`."""
        return {
            key.to_user_string()
            for key in self._graph.materializable_asset_keys
            if self._graph.get(key).partitions_def == definition
        }

    def parents(self, asset: dg.AssetKey) -> set[dg.AssetKey]:
        """Returns the assets that an asset is built from."""
        return set(self._graph.get(asset).parent_keys)

    def with_ancestors(self, assets: Collection[dg.AssetKey]) -> set[dg.AssetKey]:
        """Returns assets with all that they are built from, directly or not."""
        found, new = set(assets), set(assets)
        while new:
            new = {parent for asset in new for parent in self.parents(asset)} - found
            found |= new
        return found

    def inputs(self, asset: dg.AssetKey) -> list[dg.AssetKey]:
        """Returns those assets that give a partition its input by the same key."""
        node = self._graph.get(asset)
        return [
            parent
            for parent in sorted(node.parent_keys)
            if node.partitions_def is not None
            and self._graph.get(parent).partitions_def == node.partitions_def
            and parent not in node.partition_mappings
        ]

    def checks(self, asset: dg.AssetKey) -> list[dg.AssetCheckKey]:
        """Returns the checks of an asset."""
        return sorted(self._graph.get(asset).check_keys)

    def partitions(self, asset: dg.AssetKey) -> dg.PartitionsDefinition[str] | None:
        """Returns the partitions of an asset; None if it has none."""
        return self._graph.get(asset).partitions_def

    def keys(self, asset: dg.AssetKey, wanted: Sequence[str]) -> list[str | None]:
        """Returns the partitions to build; [None] for an asset without partitions.

        asset: key of the asset.
        wanted: partition keys of the user; empty for those that `Family.available` returns, else
            for all known ones.

        Raises click.UsageError if a key is not a partition of the asset.
        """
        definition = self._graph.get(asset).partitions_def
        if definition is None:
            if wanted:
                raise click.UsageError(
                    f"{asset.to_user_string()} has no partitions: leave --partition out"
                )
            # Such an asset is built from all partitions of others, if there are any.
            parents = self.parents(asset) & _AVAILABLE.keys()
            return [None] if not parents or any(self.keys(each, ()) for each in parents) else []
        known = self.known(asset)
        if unknown := sorted(set(wanted) - set(known)):
            raise click.UsageError(
                f"{asset.to_user_string()} has no partition {unknown[0]!r}; its partitions: "
                f"{first_and_last(self.possible(asset))}"
            )
        if not wanted and asset in _AVAILABLE:
            available = self._available(asset)
            return [key for key in known if key in available and self.is_asked(asset, key)]
        chosen = set(wanted)
        return [key for key in known if not chosen or key in chosen]

    def is_asked(self, asset: dg.AssetKey, partition: str = "") -> bool:
        """Returns whether a command without names builds a partition, or an asset without any."""
        made = declared().get(asset.to_user_string())
        return made is None or made.is_asked(self._lake, partition)

    def add_asked(self, assets: Iterable[dg.AssetKey], wanted: Collection[str]) -> None:
        """Add partitions that there are without a drop, where a person or `--all` asks for them."""
        for asset in assets:
            definition = self._graph.get(asset).partitions_def
            if not isinstance(definition, dg.DynamicPartitionsDefinition):
                continue
            asked = {*wanted, *(self._available(asset) if asset in _AVAILABLE else ())}
            asked -= set(self.known(asset))
            if new := [key for key in self.possible(asset) if key in asked]:
                add_partitions(self._instance, str(definition.name), new)
                del self._known[definition]

    def possible(self, asset: dg.AssetKey) -> list[str]:
        """Returns the partitions that an asset has, and those that it may have without a drop."""
        name = str(getattr(self._graph.get(asset).partitions_def, "name", ""))
        built_in = [key for inbox in INBOXES for key in inbox.built_in().get(name, ())]
        return list(dict.fromkeys([*built_in, *self.known(asset)]))

    def look_again(self) -> None:
        """Forget which partitions there are, since an asset or a drop was added."""
        self._seen.clear()
        self._known.clear()

    def _available(self, asset: dg.AssetKey) -> Collection[str]:
        """The partitions that `--all` builds; none where a drop makes its family fail."""
        of_family = _AVAILABLE[asset]
        if of_family not in self._seen:
            try:
                self._seen[of_family] = frozenset(of_family(self._lake))
            except Exception as error:  # noqa: BLE001  the other families are still built
                reason, trace = explained(error)
                log.error("%s: %s", asset.to_user_string(), trace or reason)
                self._seen[of_family] = frozenset()
        return self._seen[of_family]

    def materialize(
        self,
        asset: dg.AssetKey,
        keys: Sequence[str | None],
        *,
        together: bool = True,
        rebuild: bool = False,
        replace_differing: bool = False,
        wait: bool = False,
        values: Mapping[str, Any] | None = None,
    ) -> Iterator[Outcome]:
        """Run an asset, and yield the outcomes in the order of its partitions.

        asset: key of the asset.
        keys: partition keys, as `keys` returns them.
        together: partitions that follow each other share runs, as many as the asset's policy
            allows; False: each has a run of its own. Default True.
        rebuild: build unchanged artifacts, too; default False.
        replace_differing: publish contents that differ from the published ones of the same
            fingerprint; default False.
        wait: wait for another process that builds the same partition; default False.
        values: settings of the asset that come before those of files; default none.
        """
        tags = {
            # Without the tag, `prune` would close a run whose first step has not begun.
            worker.TAG: worker.identity(os.getpid()) or "",
            **({REBUILD: "true"} if rebuild else {}),
            **({REPLACE_DIFFERING: "true"} if replace_differing else {}),
            **({WAIT: "true"} if wait else {}),
        }
        name = asset.to_user_string()
        config = choices.run_config(name, values or {})
        for some in self._runs(asset, keys, together):
            interrupts.raise_again()
            result = dagster_private.run_here(
                self._instance, self._job, asset, {**tags, **ranges.tags(some)}, config
            )
            # Dagster makes a failed run of an interrupt.
            interrupts.raise_again()
            yield from outcomes_of(name, some, result)

    def _runs(
        self, asset: dg.AssetKey, keys: Sequence[str | None], together: bool
    ) -> Iterator[Sequence[str | None]]:
        """The partitions of each run."""
        wanted = {key for key in keys if key is not None}
        if not wanted:
            yield from ([key] for key in keys)
            return
        most = ranges.most_together([self._graph.get(asset).backfill_policy]) if together else 1
        yield from ranges.ranges(wanted, self.known(asset), most)

    def known(self, asset: dg.AssetKey) -> Sequence[str]:
        """Returns all partitions of an asset, in its order; none if it has no partitions."""
        definition = self._graph.get(asset).partitions_def
        if definition is None:
            return []
        if definition not in self._known:
            found = definition.get_partition_keys(dynamic_partitions_store=self._instance)
            self._known[definition] = found
        return self._known[definition]

    def in_order(self, asset: dg.AssetKey, keys: Collection[str | None]) -> Iterator[str | None]:
        """Yields partition keys in the order of the asset, as `materialize` does."""
        for some in self._runs(asset, list(keys), True):
            yield from some

    @cached_property
    def _job(self) -> dg.JobDefinition:
        return self._defs.resolve_implicit_global_asset_job_def()


def first_and_last(known: Sequence[str], most: int = _MOST_LISTED) -> str:
    """Partition keys for a message: all of them, or the first and the last of many."""
    if len(known) > most:
        return f"{', '.join(known[:2])} … {', '.join(known[-2:])} ({len(known):,})"
    return ", ".join(known) or "none"
