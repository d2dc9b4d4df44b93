"""The one place that turns a library call into a published artifact and a Dagster event.

An asset says what a partition is built from; this module publishes it and
reports it, alone or as one of many in a run. How an artifact is made, and what
a family's preview shows, do not belong here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from assets import versions, worker
from gristmill import markdown
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.publish.build import Build, Published
from gristmill.publish.publish import publish

BuildOf = Callable[[str | None], Build]
Preview = Callable[[Path], Mapping[str, str | int | float]]
SharePreview = Callable[[Published], Mapping[str, str | int | float]]
Event = dg.MaterializeResult[Any] | dg.AssetMaterialization | dg.AssetObservation

# The tag of a run that is to build what it would find unchanged: for files that
# were damaged and kept their size and time.
REBUILD = "gristmill/rebuild"

# Enough partitions a run to spread the cost of starting it, few enough that
# the first ones show up soon.
BATCH = dg.BackfillPolicy.multi_run(max_partitions_per_run=100)


def publish_asset(
    context: dg.AssetExecutionContext,
    build_of: BuildOf,
    preview: Preview = lambda _: {},
    share_preview: SharePreview = lambda _: {},
) -> Iterator[Event]:
    """Publish the run's partitions of one asset, and report each with its record.

    build_of: what is to be built for a partition key (None where the asset has
        no partitions); raises GristmillError where its inputs are not in order.
    preview: made from the published folder: Markdown documents by title, and
        numbers beyond those of the record.
    share_preview: the same of a partition's share of a folder, which its record names.

    Of several partitions each is published and reported by itself; those that
    fail are named in one failure at the end, and the others stand. A partition
    of which there is nothing to build is observed with the reason, does not
    count as materialized, and does not fail the run. Asset functions that yield
    from here have `output_required=False`.
    """
    worker.settle()
    worker.sign(context)

    def documents(published: Published) -> Mapping[str, str | int | float]:
        return {**preview(published.folder), **share_preview(published)}

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
        with _told_plainly():
            published = publish(build_of(key), rebuild=context.run.tags.get(REBUILD) == "true")
    except NothingToBuild as reason:
        yield _passed_over(context, key, reason)
        return
    _log(context, published)
    yield dg.MaterializeResult(
        metadata=event_metadata(published, documents),
        data_version=dg.DataVersion(published.record.data_version),
    )


def event_metadata(published: Published, preview_of: SharePreview = lambda _: {}) -> dict[str, Any]:
    """Metadata of the event: numbers to plot, documents to read, and the whole record."""
    record = published.record
    metadata: dict[str, Any] = {
        "path": dg.MetadataValue.path(published.folder),
        "status": "built" if published.rebuilt else "unchanged",
    }
    if published.notes:
        metadata["notes"] = dg.MetadataValue.md(markdown.bullets(published.notes))
    previewed = preview_of(published)
    if taken := set(previewed) & set(record.counts):
        raise ValueError(f"a preview and a count of {record.asset} share the title {taken.pop()}")
    for title, value in previewed.items():
        metadata[title] = dg.MetadataValue.md(value) if isinstance(value, str) else value
    metadata |= record.counts
    metadata["bytes"] = sum(output.bytes for output in record.outputs)
    metadata["seconds"] = record.seconds
    metadata["peak_memory_mb"] = round(record.peak_memory_bytes / 1e6, 1)
    if "rows" in metadata:
        metadata["dagster/partition_row_count"] = metadata["rows"]
    metadata["provenance"] = dg.MetadataValue.json(record.model_dump(mode="json"))
    return metadata


def _publish_batch(
    context: dg.AssetExecutionContext, keys: list[str], build_of: BuildOf, preview_of: SharePreview
) -> Iterator[Event]:
    events: list[dg.AssetMaterialization] = []
    failed: dict[str, str] = {}
    passed_over = False
    tags_of = versions.tagger(context, keys)
    for key in keys:
        try:
            published = publish(build_of(key), rebuild=context.run.tags.get(REBUILD) == "true")
        except NothingToBuild as nothing:
            yield _passed_over(context, key, nothing)
            passed_over = True
            continue
        except Exception as error:  # noqa: BLE001  each partition fails alone; all are raised below
            reason = str(error) if isinstance(error, GristmillError) else traceback.format_exc()
            failed[key] = reason
            context.log.error(f"{key}: {reason}")
            continue
        # No line in the log: it would cost as much as the event, which says the same.
        event = dg.AssetMaterialization(
            asset_key=context.asset_key,
            partition=key,
            metadata=event_metadata(published, preview_of),
            tags=tags_of(key, published.record.data_version),
        )
        events.append(event)
        yield event
    if failed:
        listed = "\n".join(f"{key}: {reason.splitlines()[-1]}" for key, reason in failed.items())
        raise dg.Failure(
            f"{len(failed)} of {len(keys)} partitions failed, the others are published:\n{listed}",
            metadata={"failed": dg.MetadataValue.json(failed)},
            allow_retries=False,
        )
    if passed_over:
        # An output would count as a materialization of every partition of the range.
        context.log.warning("Steps downstream wait: launch them for the partitions that are there.")
    elif len(context.job_def.nodes) > 1:
        # Steps downstream in this run wait for the step's output. Dagster reports
        # it with one data version for all partitions, so the true events follow it.
        yield dg.MaterializeResult()
        yield from events


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Raise the library's errors as failures that no retry can mend, with the text alone."""
    try:
        yield
    except NothingToBuild:
        raise
    except GristmillError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def _log(context: dg.AssetExecutionContext, published: Published) -> None:
    what = "built" if published.rebuilt else "unchanged"
    context.log.info(f"{published.record.artifact}: {what}")
    for note in published.notes:
        context.log.info(note)


def _passed_over(
    context: dg.AssetExecutionContext, key: str | None, reason: NothingToBuild
) -> dg.AssetObservation:
    """Tell the log, and the asset's page, why there is nothing to build of a partition."""
    context.log.warning(f"{key}: not built: {reason}" if key else f"not built: {reason}")
    return dg.AssetObservation(
        asset_key=context.asset_key,
        partition=key,
        description=f"not built: {reason}",
        metadata={"status": "not built", "reason": str(reason)},
    )
