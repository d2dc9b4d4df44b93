"""The graph of assets: select assets and partitions, and run them in this process.

Which of them need no run: the records on disk say what is published, and from what; the instance
says what its pages show. A target whose build needs what failed earlier in the same call waits for
it: it has no error of its own. Drops that no sensor has taken are reported to the instance.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import click
import dagster as dg

import definitions
from assets import choices, versions, worker
from assets.checking.arrivals import changed_evaluation, out_of_order
from assets.checking.evaluations import PLANNED
from assets.inbox import Inbox, add_partitions, is_asked
from assets.publishing import REBUILD, REPLACE_DIFFERING, WAIT
from assets.publishing import STATUS as NOT_PUSHED
from assets.versions import PARTITION
from commands import dagster_private
from commands.outcomes import Outcome, named_in, outcomes_of
from gristmill.contract import NothingToBuild
from gristmill.inbox import REFUSED, present_drops
from gristmill.inbox import Standing as Drop
from gristmill.layout import DROPS
from gristmill.printable import plain
from gristmill.provenance import Record
from gristmill.publish.publish import reason_to_build, standing_record
from gristmill.run import interrupts
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.fields import nearest
from gristmill.untrusted.limits import explained, unreadable
from resources import Lake, NotBuilt, NotRebuilt
from sensors.raw_drops import arrival_events

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
        self.is_whole = True  # no family failed to say what is there
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
        return is_asked(asset, self._lake, partition)

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
                self._seen[of_family], self.is_whole = frozenset(), False
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
                self._instance, self._job, asset, {**tags, **versions.run_tags(some)}, config
            )
            # Dagster makes a failed run of an interrupt.
            interrupts.raise_again()
            yield from outcomes_of(name, some, result)

    def _runs(
        self, asset: dg.AssetKey, keys: Sequence[str | None], together: bool
    ) -> Iterator[Sequence[str | None]]:
        wanted = {key for key in keys if key is not None}
        if not wanted:
            yield from ([key] for key in keys)
            return
        most = versions.most_together([self._graph.get(asset).backfill_policy]) if together else 1
        yield from versions.ranges(wanted, self.known(asset), most)

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


FAILED: Final = "FAILED"
"""Status of a partition whose last run failed before it was built, as pages have it."""


@dataclass
class Plan:
    """What is to be done for the partitions of one asset.

    standing: the outcome of each partition that needs no run.
    together: partitions whose build is known; they may share runs.
    why: what is not as their records say; none of one whose page alone is not current.
    alone: partitions without a build, by the error that says why; a run shows it, one for each
        that fails.
    """

    standing: dict[str | None, Outcome] = field(default_factory=dict)
    together: list[str | None] = field(default_factory=list)
    why: dict[str | None, str] = field(default_factory=dict)
    alone: dict[str | None, Exception] = field(default_factory=dict)


class Standing:
    """What stands on disk and in the instance."""

    def __init__(self, instance: dg.DagsterInstance, lake: Lake, graph: Graph) -> None:
        self._instance, self._lake, self._graph = instance, lake, graph

    def plan(
        self, asset: dg.AssetKey, keys: Sequence[str | None], progress: Progress = SILENT
    ) -> Plan:
        """Returns what is to be done for an asset; keys: as `Graph.keys` returns them."""
        plan = Plan()
        current: dict[str | None, Record] = {}
        name = asset.to_user_string()
        with progress.stage(f"compare {name}", "files", len(keys)) as stage:
            for key in keys:
                interrupts.raise_again()
                self._compare(asset, key, plan, current)
                stage.advance(1)
        known = self._known(asset, current) - self._fallen_short(asset, current)
        known -= self._failed(asset, known) | self._not_pushed(asset, known)
        for key, record in current.items():
            if key in known:
                plan.standing[key] = Outcome(
                    name,
                    key or "",
                    "unchanged",
                    rows=rows if isinstance(rows := record.counts.get("rows"), int) else None,
                    bytes=sum(output.bytes for output in record.outputs),
                    seconds=record.seconds,
                    place=str(self._lake.root / record.artifact),
                )
        plan.together = [key for key in keys if key not in plan.standing and key not in plan.alone]
        return plan

    def _compare(
        self,
        asset: dg.AssetKey,
        key: str | None,
        plan: Plan,
        current: dict[str | None, Record],
    ) -> None:
        """Put the record of a partition into `current`, or what is known of it into `plan`."""
        name = asset.to_user_string()
        try:
            build = definitions.build_of(name, self._lake, key)
            if build is None:  # no family declares it: a run finds out
                return
            record = standing_record(build)
        except NothingToBuild as error:
            found = self._instance.fetch_observations(
                dg.AssetRecordsFilter(asset, asset_partitions=None if key is None else [key]),
                limit=1,
            ).records
            observation = found[0].asset_observation if found else None
            shown = observation.metadata.get("reason") if observation else None
            if shown is not None and shown.value == plain(str(error)):
                reason = plain(str(error))
                plan.standing[key] = Outcome(name, key or "", "not built", reason=reason)
            else:
                plan.alone[key] = error
        except Exception as error:  # noqa: BLE001  the run of the partition reports it
            plan.alone[key] = error
        else:
            if record is not None:
                current[key] = record
            else:
                plan.why[key] = reason_to_build(build)

    def _known(self, asset: dg.AssetKey, current: Mapping[str | None, Record]) -> set[str | None]:
        """The partitions whose latest event has the data version of the record.

        The versions of the inputs must be those of now, too: a page would show the partition as
        stale otherwise.
        """
        if None in current:
            newest = versions.newest_version(self._instance, asset)
            return {None} if newest and newest[0] == current[None].data_version else set()
        keys = [key for key in current if key is not None]
        known = {
            key: event
            for key, (version, event) in versions.latest(self._instance, asset, keys).items()
            if version == current[key].data_version
        }
        inputs = self._graph.inputs(asset)
        stale = versions.outdated(self._instance, asset, inputs, known)
        return {key for key in known if key not in stale}

    def _failed(self, asset: dg.AssetKey, keys: Collection[str | None]) -> set[str | None]:
        """The partitions that pages show as failed: a run of them failed since they were built.

        A run finds them unchanged, and reports that.
        """
        if not keys:
            return set()
        partitions = self._graph.partitions(asset)
        if partitions is not None:
            named = [key for key in keys if key is not None]
            found = self._instance.get_status_by_partition(asset, named, partitions)
            return {key for key, one in (found or {}).items() if one and one.value == FAILED}
        entries = [one.asset_entry for one in self._instance.get_asset_records([asset])]
        if not entries or entries[0].last_run_id is None:
            return set()
        built, run = entries[0].last_materialization, entries[0].last_run_id
        if built is not None and built.run_id == run:
            return set()
        last = self._instance.get_run_by_id(run)
        return set(keys) if last and last.status is dg.DagsterRunStatus.FAILURE else set()

    def _not_pushed(self, asset: dg.AssetKey, keys: Collection[str | None]) -> set[str | None]:
        """The partitions whose page says that the mirror lacks them: a run pushes what it finds."""
        if not keys or not self._lake.mirror().takes(asset.to_user_string()):
            return set()
        named = None if None in keys else [key for key in keys if key is not None]
        seen = versions.observed_since(self._instance, asset, named)
        statuses = {key: said.metadata.get("status") for key, said in seen.items()}
        return {key for key, status in statuses.items() if status and status.value == NOT_PUSHED}

    def _fallen_short(self, asset: dg.AssetKey, keys: Collection[str | None]) -> set[str | None]:
        """The partitions that a check of the asset finds wrong, or has not looked at to the end."""
        latest = self._instance.event_log_storage.get_latest_asset_check_execution_by_key(
            self._graph.checks(asset)
        )
        found: set[str | None] = set()
        for record in latest.values():
            if record.status.value == PLANNED:
                found |= self._keys_of_run(record.run_id, keys)
            elif record.event is not None and record.event.dagster_event is not None:
                evaluation = record.event.dagster_event.asset_check_evaluation_data
                if not evaluation.passed and evaluation.severity is dg.AssetCheckSeverity.ERROR:
                    found |= named_in(evaluation, keys)
        return found

    def _keys_of_run(self, run: str, keys: Collection[str | None]) -> set[str | None]:
        """The partitions of a run; all of the asset if it has no tag of one partition."""
        started = self._instance.get_run_by_id(run)
        key = started.tags.get(PARTITION) if started else None
        return {key} if key is not None else set(keys)


_MOST_NAMED: Final = 3
# Other errors are the target's own, as that another process builds it.
_FOLLOWS: Final = (NotBuilt.__name__, NotRebuilt.__name__)


class Failures:
    """The targets of one call that failed, and those that wait for them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        # Of each target that was not built: the failed targets that it waits for, or itself.
        self._roots: dict[tuple[dg.AssetKey, str], list[str]] = {}

    def judged(self, asset: dg.AssetKey, outcome: Outcome) -> Outcome:
        """Returns the outcome of a target; `not built` with what it waits for if it only waits."""
        if outcome.status != "failed":
            return outcome
        if roots := self._waits_for(asset, outcome):
            more = f" and {len(roots) - _MOST_NAMED} more" if len(roots) > _MOST_NAMED else ""
            reason = f"waits for {', '.join(roots[:_MOST_NAMED])}{more}"
            outcome = replace(outcome, status="not built", reason=reason)
        self._roots[asset, outcome.partition] = roots or [outcome.target]
        return outcome

    def follows(self, asset: dg.AssetKey, key: str | None, error: Exception) -> Outcome | None:
        """Returns the outcome of a target that needs no run, since it waits for a failed one."""
        outcome = Outcome(
            asset.to_user_string(),
            key or "",
            "failed",
            reason=str(error),
            error=type(error).__name__,
        )
        return self.judged(asset, outcome) if self._waits_for(asset, outcome) else None

    def _waits_for(self, asset: dg.AssetKey, outcome: Outcome) -> list[str]:
        if outcome.error not in _FOLLOWS:
            return []
        parents = self._graph.parents(asset)
        found: dict[str, None] = {}
        for (parent, partition), roots in self._roots.items():
            if parent in parents and self._needs(asset, outcome, parent, partition):
                found |= dict.fromkeys(roots)
        return list(found)

    def _needs(
        self, asset: dg.AssetKey, outcome: Outcome, parent: dg.AssetKey, partition: str
    ) -> bool:
        own, other = self._graph.partitions(asset), self._graph.partitions(parent)
        if own is None or other is None:
            return True
        if own == other:
            return outcome.partition == partition
        # Which partitions it needs is in its drop; the error names the first that is missing.
        return f"{parent.to_user_string()} {partition} is not built" in outcome.reason


def strangers(lake: Lake) -> Iterator[str]:
    """Yields a line for each folder of `drops/` that is no inbox: nothing looks at it."""
    known = sorted({inbox.folder.partition("/")[0] for inbox in INBOXES})
    try:
        found = sorted(path.name for path in (lake.root / DROPS).iterdir() if path.is_dir())
    except OSError:
        return
    for name in found:
        if name.startswith(".") or name in known:
            continue
        close = nearest(name, known)
        hint = f"did you mean {close}?" if close else f"the inboxes are {', '.join(known)}"
        yield f"{DROPS}/{name} is no inbox: {hint}"


def register(instance: dg.DagsterInstance, lake: Lake, inbox: Inbox) -> list[Drop]:
    """Report new and replaced drops of an inbox to the instance, and add their partitions."""
    *_, wrong = lake.rules(inbox.folder)
    settings = [Drop("", REFUSED, 0, wrong)] if wrong else []
    try:
        present = present_drops(lake.inbox(inbox.folder), lake.asked(inbox.folder), inbox.shape)
    except OSError as error:
        return [*settings, Drop("", REFUSED, 0, unreadable(error))]
    settled = [arrival.key for arrival in present.arrivals]
    starts = [
        start
        for arrival in present.arrivals
        for start in inbox.starts_of(instance, arrival, settled)
    ]
    starts += inbox.starts_of_made(lake.root)
    for name, new in inbox.additions(instance, present.arrivals, starts).items():
        add_partitions(instance, name, new)
    partitions = {arrival.key: inbox.partitions_of(arrival) for arrival in present.arrivals}
    keys = {key for of_drop in partitions.values() for key in of_drop}
    known = versions.latest(instance, inbox.raw_drop, sorted(keys))
    with worker.stored_together(instance):
        for arrival in present.arrivals:
            of_drop = partitions[arrival.key]
            reported = {known.get(key, (None, 0))[0] for key in of_drop}
            if reported != {arrival.signature}:
                for event in arrival_events(inbox, arrival, of_drop):
                    instance.report_runless_asset_event(event)
    found = out_of_order(instance, inbox, present)
    if evaluation := changed_evaluation(instance, inbox, found):
        instance.report_runless_asset_event(evaluation)
    for refusal in present.refusals:
        if refusal.trace:
            log.error("%s/%s: %s", inbox.folder, refusal.key, refusal.trace)
    return [*settings, *found]
