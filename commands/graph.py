"""The project's assets, to be chosen by name and run in this process, one run a partition."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import dagster as dg

import definitions
from assets import worker
from assets.publishing import REBUILD
from commands.table import Outcome
from commands.terminal import console
from resources.lake import Lake

_FAMILIES = list(definitions.families())

INBOXES = [inbox for family in _FAMILIES for inbox in family.inboxes]
"""The inboxes of all families."""

# Which partitions `--all` takes, where not all that are known.
_AVAILABLE = {
    key: family.available
    for family in _FAMILIES
    if family.available is not None
    for asset in family.assets
    if isinstance(asset, dg.AssetsDefinition)
    for key in asset.keys
}

# Where dependencies leave the order open, assets are built as their families list them.
_ORDER = [
    key
    for family in _FAMILIES
    for asset in family.assets
    for key in ([asset.key] if isinstance(asset, dg.AssetSpec) else sorted(asset.keys))
]

# The table names what failed and why; the UI has the log.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

_MOST_LISTED = 40


class Graph:
    """The project's assets, to be run in this process against an instance."""

    def __init__(self, instance: dg.DagsterInstance, lake: Lake) -> None:
        self._instance = instance
        self._lake = lake
        defs = definitions.build_defs()
        self._job = defs.resolve_implicit_global_asset_job_def()
        self._graph = defs.resolve_asset_graph()

    def select(self, names: Sequence[str]) -> list[dg.AssetKey]:
        """The assets to build, each after those that it is made from.

        names: keys, as `macroxue/pack`; empty for every asset that can be built.

        Raises click.UsageError for a name that is no asset that can be built.
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
            raise click.UsageError(f"{name} is not an asset that can be built; there are: {known}")
        return [key for key in ordered if not names or key in wanted]

    def partitioned_by(self, definition: dg.PartitionsDefinition[str]) -> set[str]:
        """Names of the assets that are partitioned by `definition`."""
        return {
            key.to_user_string()
            for key in self._graph.materializable_asset_keys
            if self._graph.get(key).partitions_def == definition
        }

    def keys(self, asset: dg.AssetKey, wanted: Sequence[str]) -> list[str | None]:
        """The partitions of `asset` to build; [None] for an asset without partitions.

        wanted: keys that the user named; empty for those that its family's drops give, which
            are all known keys unless the family says which.

        Raises click.UsageError for a key that is no partition of the asset.
        """
        definition = self._graph.get(asset).partitions_def
        if definition is None:
            if wanted:
                raise click.UsageError(f"{asset.to_user_string()} has no partitions")
            # It is made from all partitions of others, if there are any.
            return [None] if asset not in _AVAILABLE or _AVAILABLE[asset](self._lake) else []
        known = definition.get_partition_keys(dynamic_partitions_store=self._instance)
        if unknown := sorted(set(wanted) - set(known)):
            raise click.UsageError(
                f"{asset.to_user_string()} has no partition {unknown[0]!r}; there are: "
                f"{_listed(known)}"
            )
        if not wanted and asset in _AVAILABLE:
            wanted = sorted(_AVAILABLE[asset](self._lake))
            return [key for key in known if key in wanted]
        return [key for key in known if not wanted or key in wanted]

    def materialize(
        self, asset: dg.AssetKey, keys: Sequence[str | None], rebuild: bool
    ) -> Iterator[Outcome]:
        """Run one asset, one run a partition, so that each is a run of its own in the UI.

        rebuild: build also what would be found unchanged.
        """
        for key in keys:
            with console.status(f"{asset.to_user_string()} {key or ''}"):
                result = self._job.execute_in_process(
                    instance=self._instance,
                    asset_selection=[asset],
                    run_config=_QUIET,
                    partition_key=key,
                    # Until the first asset signs the run, `reap` would find no process for it.
                    tags={
                        worker.TAG: worker.identity(os.getpid()) or "",
                        **({REBUILD: "true"} if rebuild else {}),
                    },
                    raise_on_error=False,
                )
            yield _outcome(asset.to_user_string(), key or "", result)


def _listed(known: Sequence[str]) -> str:
    """Partition keys for an error: of many the first and the last."""
    if len(known) > _MOST_LISTED:
        return f"{', '.join(known[:2])} … {', '.join(known[-2:])}"
    return ", ".join(known) or "none"


def _outcome(asset: str, partition: str, result: dg.ExecuteInProcessResult) -> Outcome:
    events = result.get_asset_materialization_events()
    if result.success and not events and (observed := result.get_asset_observation_events()):
        reason = observed[-1].asset_observation_data.asset_observation.metadata["reason"].value
        return Outcome(asset, partition, "not built", reason=str(reason))
    if reason := _failure(asset, partition, result):
        return Outcome(asset, partition, "failed", reason=reason)
    materialization = events[-1].step_materialization_data.materialization
    metadata: Mapping[str, Any] = {
        name: value.value for name, value in materialization.metadata.items()
    }
    return Outcome(
        asset,
        partition,
        status=metadata["status"],
        rows=metadata.get("dagster/partition_row_count"),
        bytes=metadata["bytes"],
        seconds=metadata["seconds"],
        place=str(metadata["path"]),
    )


def _failure(asset: str, partition: str, result: dg.ExecuteInProcessResult) -> str | None:
    """Why the run or one of its checks failed, None where neither did."""
    published = bool(result.get_asset_materialization_events())
    broken = [
        f"check {done.check_name}: {done.description}"
        for done in result.get_asset_check_evaluations()
        if not done.passed and done.severity is dg.AssetCheckSeverity.ERROR
    ]
    if broken and published:
        named = f" --partition {partition}" if partition else ""
        command = f"gristmill materialize {asset}{named} --rebuild"
        return f"{'; '.join(broken)}: if its files are damaged, `{command}`"
    if result.success and published:
        return None
    for event in result.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data:
            return str(failure.user_failure_data.description).strip()
        # An error that the library did not foresee is shown with its traceback.
        return failure.error.to_string().strip() if failure.error else "the run failed"
    return "the run failed"
