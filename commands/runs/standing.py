"""Which partitions need no run: their artifacts are current, and the instance knows them.

The records on disk say what is published, and from what; the instance says what its pages show. A
target whose build needs what failed earlier in the same call waits for it: it has no error of its
own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import dagster as dg

import definitions
from assets import versions
from assets.checking.evaluations import PLANNED
from assets.publishing import STATUS as NOT_PUSHED
from assets.ranges import PARTITION
from commands.graph import Graph
from commands.runs.outcomes import Outcome, named_in
from gristmill.contract import NothingToBuild
from gristmill.printable import plain
from gristmill.provenance import Record
from gristmill.publish.publish import reason_to_build, standing_record
from gristmill.run import interrupts
from gristmill.run.progress import SILENT, Progress
from resources.lake import Lake, NotBuilt, NotRebuilt

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
                plan.standing[key] = _unchanged(name, key, record, self._lake)
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
            if self._is_observed(asset, key, error):
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

    def _is_observed(self, asset: dg.AssetKey, key: str | None, reason: Exception) -> bool:
        """Whether the asset's page has the reason why a partition is not built."""
        found = self._instance.fetch_observations(
            dg.AssetRecordsFilter(asset, asset_partitions=None if key is None else [key]), limit=1
        ).records
        observation = found[0].asset_observation if found else None
        shown = observation.metadata.get("reason") if observation else None
        return shown is not None and shown.value == plain(str(reason))


def _unchanged(asset: str, key: str | None, record: Record, lake: Lake) -> Outcome:
    return Outcome(
        asset,
        key or "",
        "unchanged",
        rows=rows if isinstance(rows := record.counts.get("rows"), int) else None,
        bytes=sum(output.bytes for output in record.outputs),
        seconds=record.seconds,
        place=str(lake.root / record.artifact),
    )


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
