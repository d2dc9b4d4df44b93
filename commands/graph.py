"""The graph of assets: select assets and partitions, and run them in this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import dagster as dg

import definitions
from assets import worker
from assets.publishing import REBUILD, REPLACE_DIFFERING
from commands.table import Outcome
from commands.terminal import console
from gristmill.untrusted.errors import explained
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

# The table at the end has the failures and their reasons, and the UI has the log.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

_MOST_LISTED = 40


class Graph:
    """The project's assets, to run them in this process on an instance.

    instance: the Dagster instance for the runs.
    lake: the data root.
    """

    def __init__(self, instance: dg.DagsterInstance, lake: Lake) -> None:
        self._instance = instance
        self._lake = lake
        defs = definitions.build_defs()
        self._job = defs.resolve_implicit_global_asset_job_def()
        self._graph = defs.resolve_asset_graph()

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
            raise click.UsageError(f"{name} is not an asset that can be built; these are: {known}")
        return [key for key in ordered if not names or key in wanted]

    def partitioned_by(self, definition: dg.PartitionsDefinition[str]) -> set[str]:
        """Returns the keys of the assets with these partitions, as `macroxue/pack`.

        definition: the partitions.
        """
        return {
            key.to_user_string()
            for key in self._graph.materializable_asset_keys
            if self._graph.get(key).partitions_def == definition
        }

    def parents(self, asset: dg.AssetKey) -> set[dg.AssetKey]:
        """Returns the assets that an asset is built from.

        asset: key of the asset.
        """
        return set(self._graph.get(asset).parent_keys)

    def partitions(self, asset: dg.AssetKey) -> dg.PartitionsDefinition[str] | None:
        """Returns the partitions of an asset; None if it has none.

        asset: key of the asset.
        """
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
            return [None] if asset not in _AVAILABLE or self._available(asset) else []
        known = definition.get_partition_keys(dynamic_partitions_store=self._instance)
        if unknown := sorted(set(wanted) - set(known)):
            raise click.UsageError(
                f"{asset.to_user_string()} has no partition {unknown[0]!r}; its partitions: "
                f"{_first_and_last(known)}"
            )
        if not wanted and asset in _AVAILABLE:
            wanted = self._available(asset)
            return [key for key in known if key in wanted]
        return [key for key in known if not wanted or key in wanted]

    def _available(self, asset: dg.AssetKey) -> list[str]:
        """The partitions that `--all` builds; none where a drop makes its family fail."""
        try:
            return sorted(_AVAILABLE[asset](self._lake))
        except Exception as error:  # noqa: BLE001  the other families are still built
            reason, trace = explained(error)
            log.error("%s: %s", asset.to_user_string(), trace or reason)
            return []

    def materialize(
        self,
        asset: dg.AssetKey,
        keys: Sequence[str | None],
        *,
        rebuild: bool = False,
        replace_differing: bool = False,
    ) -> Iterator[Outcome]:
        """Run an asset, in a separate run for each partition, and yield the outcomes.

        asset: key of the asset.
        keys: partition keys, as `keys` returns them.
        rebuild: build unchanged artifacts, too; default False.
        replace_differing: publish contents that differ from the published ones of the same
            fingerprint; default False.
        """
        for key in keys:
            with console.status(f"{asset.to_user_string()} {key or ''}"):
                result = self._job.execute_in_process(
                    instance=self._instance,
                    asset_selection=[asset],
                    run_config=_QUIET,
                    partition_key=key,
                    # Without the tag, `reap` would close a run whose first step has not begun.
                    tags={
                        worker.TAG: worker.identity(os.getpid()) or "",
                        **({REBUILD: "true"} if rebuild else {}),
                        **({REPLACE_DIFFERING: "true"} if replace_differing else {}),
                    },
                    raise_on_error=False,
                )
            yield _outcome(asset.to_user_string(), key or "", result)


def _first_and_last(known: Sequence[str]) -> str:
    """Partition keys for an error message: all of them, or the first and the last of many."""
    if len(known) > _MOST_LISTED:
        return f"{', '.join(known[:2])} … {', '.join(known[-2:])}"
    return ", ".join(known) or "none"


def _outcome(asset: str, partition: str, result: dg.ExecuteInProcessResult) -> Outcome:
    events = result.get_asset_materialization_events()
    if result.success and not events and (observed := result.get_asset_observation_events()):
        reason = observed[-1].asset_observation_data.asset_observation.metadata["reason"].value
        return Outcome(asset, partition, "not built", reason=str(reason))
    if reason := _failure(asset, partition, result):
        return Outcome(asset, partition, "failed", reason=reason, error=_error(result))
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


def _error(result: dg.ExecuteInProcessResult) -> str:
    """The class of the library's error that a run failed with; empty for any other failure."""
    for event in result.get_step_failure_events():
        error = event.step_failure_data.error
        if event.step_failure_data.user_failure_data and error and error.cause:
            return str(error.cause.cls_name)
    return ""


def _failure(asset: str, partition: str, result: dg.ExecuteInProcessResult) -> str | None:
    """Why the run or one of its checks failed; None if none failed."""
    published = bool(result.get_asset_materialization_events())
    failed_checks = [
        f"check {check.check_name}: {check.description}"
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.severity is dg.AssetCheckSeverity.ERROR
    ]
    if failed_checks and published:
        option = f" --partition {partition}" if partition else ""
        command = f"gristmill materialize {asset}{option} --rebuild"
        return f"{'; '.join(failed_checks)}: if its files are damaged, run `{command}`"
    if result.success and published:
        return None
    for event in result.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data:
            return str(failure.user_failure_data.description).strip()
        # An error that the library does not expect is shown with its traceback.
        return failure.error.to_string().strip() if failure.error else "the run failed"
    return "the run failed"
