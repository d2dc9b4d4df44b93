"""Publishes the partitions of a run and reports each of them as a Dagster event.

Every asset of the project calls `publish_asset` with a function that returns the `Build` of a
partition. The functions for the builds belong in `assets/<family>/`, the previews in
`gristmill/<family>/show/`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from assets import versions, worker
from assets.event_metadata import PartitionPreview, event_metadata
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.markdown import escape
from gristmill.printable import plain
from gristmill.publish.build import Build, Published
from gristmill.publish.publish import publish

BuildOf = Callable[[str | None], Build]
Preview = Callable[[Path], Mapping[str, str | int | float]]
Event = dg.MaterializeResult[Any] | dg.AssetMaterialization | dg.AssetObservation

# Characters of one reason, and partitions, in the event of a run of many that failed.
_MOST_REASON, _MOST_LISTED, _MOST_LOGGED = 900, 100, 10_000

# A run with this tag builds unchanged artifacts too, for files that were damaged but kept
# their size and time.
REBUILD = "gristmill/rebuild"
# A run with this tag beside `REBUILD` publishes a build though it has the fingerprint of the
# published version and other contents.
REPLACE_DIFFERING = "gristmill/replace-differing"

# Many partitions in one run share the cost of its start; few partitions let the first ones
# appear soon.
BATCH = dg.BackfillPolicy.multi_run(max_partitions_per_run=100)


def publish_asset(
    context: dg.AssetExecutionContext,
    build_of: BuildOf,
    preview: Preview = lambda _: {},
    partition_preview: PartitionPreview = lambda _: {},
) -> Iterator[Event]:
    """Publish the run's partitions of one asset, and report each with its record.

    context: the context of the asset's step. The asset has `output_required=False`.
    build_of: takes a partition key (None for an asset without partitions) and returns what is
        to be built.
    preview: takes the published folder and returns Markdown documents and numbers by title, in
        addition to the counts of the record; default none.
    partition_preview: the same for a partition in a folder that several partitions share; it
        takes the published artifact. Default none.

    Yields one event for each partition. If a build raises NothingToBuild, the event is an
    observation with the reason: the partition does not count as materialized, and the run
    does not fail.

    Raises dagster.Failure with the message of a GristmillError, and at the end of a run of
    several partitions if some of them failed; the others are published.
    """
    worker.freeze_imports()
    worker.sign(context)

    def documents(published: Published) -> Mapping[str, str | int | float]:
        return {**preview(published.folder), **partition_preview(published)}

    # A run of some partitions may also hold assets that have none.
    partitioned = context.assets_def.partitions_def is not None
    in_range = partitioned and context.has_partition_key_range
    keys = list(context.partition_keys) if in_range else []
    if len(keys) > 1:
        yield from _publish_batch(context, keys, build_of, documents)
        return
    key = context.partition_key if partitioned and context.has_partition_key else None
    key = key or next(iter(keys), None)
    try:
        with _library_errors_as_failures():
            published = _publish(context, build_of(key))
    except NothingToBuild as reason:
        yield _not_built(context, key, reason)
        return
    _log(context, published)
    yield dg.MaterializeResult(
        metadata=event_metadata(published, documents),
        data_version=dg.DataVersion(published.record.data_version),
    )


def _publish_batch(
    context: dg.AssetExecutionContext,
    keys: list[str],
    build_of: BuildOf,
    preview_of: PartitionPreview,
) -> Iterator[Event]:
    events: list[dg.AssetMaterialization] = []
    failed: dict[str, str] = {}
    has_unbuilt = False
    tags_of = versions.tagger(context, keys)
    for key in keys:
        try:
            published = _publish(context, build_of(key))
        except NothingToBuild as nothing:
            yield _not_built(context, key, nothing)
            has_unbuilt = True
            continue
        except Exception as error:  # noqa: BLE001  each partition fails alone; all are raised below
            reason = str(error) if isinstance(error, GristmillError) else traceback.format_exc()
            failed[key] = plain(reason, _MOST_REASON)
            context.log.error(f"{key}: {plain(reason, _MOST_LOGGED)}")
            continue
        # No line in the log: it would cost as much as the event, which has the same facts.
        event = dg.AssetMaterialization(
            asset_key=context.asset_key,
            partition=key,
            metadata=event_metadata(published, preview_of),
            tags=tags_of(key, published.record.data_version),
        )
        events.append(event)
        yield event
    if failed:
        lines = [f"{key}: {reason.splitlines()[-1]}" for key, reason in failed.items()]
        listed = "\n".join(lines[:_MOST_LISTED])
        raise dg.Failure(
            f"{len(failed)} of {len(keys)} partitions failed, the others are published:\n{listed}",
            metadata={"failed": dg.MetadataValue.json(dict(list(failed.items())[:_MOST_LISTED]))},
            allow_retries=False,
        )
    if has_unbuilt:
        # An output would count as a materialization of every partition of the range.
        context.log.warning(
            "Assets downstream are not built in this run, since some partitions were not built: "
            "launch them for the partitions that were."
        )
    elif len(context.job_def.nodes) > 1:
        # Steps downstream in this run wait for the step's output. Dagster reports it with one
        # data version for all partitions, so the events with their own versions follow it.
        yield dg.MaterializeResult()
        yield from events


def _publish(context: dg.AssetExecutionContext, build: Build) -> Published:
    tags = context.run.tags
    return publish(
        build,
        rebuild=tags.get(REBUILD) == "true",
        replace_differing=tags.get(REPLACE_DIFFERING) == "true",
    )


@contextmanager
def _library_errors_as_failures() -> Iterator[None]:
    """Raise an error of the library as a failure without retries that shows the message alone."""
    try:
        yield
    except NothingToBuild:
        raise
    except GristmillError as error:
        raise dg.Failure(plain(str(error)), allow_retries=False) from error


def _log(context: dg.AssetExecutionContext, published: Published) -> None:
    status = "built" if published.rebuilt else "unchanged"
    context.log.info(f"{published.record.artifact}: {status}")
    for note in published.notes:
        context.log.info(plain(note))


def _not_built(
    context: dg.AssetExecutionContext, key: str | None, reason: NothingToBuild
) -> dg.AssetObservation:
    """Report to the log and to the asset's page why a partition was not built."""
    text = plain(str(reason))
    context.log.warning(f"{key}: not built: {text}" if key else f"not built: {text}")
    return dg.AssetObservation(
        asset_key=context.asset_key,
        partition=key,
        description=f"not built: {escape(text)}",  # the UI shows it as Markdown
        metadata={"status": "not built", "reason": text},
    )
