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
from gristmill.artifact import Build, Published, publish
from gristmill.contract import GristmillError

BuildOf = Callable[[str | None], Build]
Preview = Callable[[Path], Mapping[str, str]]
SharePreview = Callable[[Published], Mapping[str, str]]
Event = dg.MaterializeResult | dg.AssetMaterialization

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
    preview: Markdown documents by title, made from the published folder.
    share_preview: the same of a partition's share of a folder, which its record names.

    Of several partitions each is published and reported by itself; those that
    fail are named in one failure at the end, and the others stand. Asset
    functions that yield from here have `output_required=False`.
    """
    worker.sign(context)

    def documents(published: Published) -> Mapping[str, str]:
        return {**preview(published.folder), **share_preview(published)}

    # A run of some partitions may also hold assets that have none.
    partitioned = context.assets_def.partitions_def is not None
    in_range = partitioned and context.has_partition_key_range
    keys = list(context.partition_keys) if in_range else []
    if len(keys) > 1:
        yield from _publish_batch(context, keys, build_of, documents)
        return
    alone = partitioned and context.has_partition_key
    key = context.partition_key if alone else next(iter(keys), None)
    with _told_plainly():
        published = publish(build_of(key))
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
        metadata["notes"] = dg.MetadataValue.md("\n".join(f"* {note}" for note in published.notes))
    documents = preview_of(published)
    if taken := set(documents) & set(record.counts):
        raise ValueError(f"a document and a count of {record.asset} share the title {taken.pop()}")
    metadata |= {title: dg.MetadataValue.md(text) for title, text in documents.items()}
    metadata |= record.counts
    metadata["bytes"] = sum(output.bytes for output in record.outputs)
    metadata["seconds"] = record.seconds
    metadata["peak_memory_mb"] = round(record.peak_memory_bytes / 1e6, 1)
    if "rows" in record.counts:
        metadata["dagster/partition_row_count"] = record.counts["rows"]
    metadata["provenance"] = dg.MetadataValue.json(record.model_dump(mode="json"))
    return metadata


def _publish_batch(
    context: dg.AssetExecutionContext, keys: list[str], build_of: BuildOf, preview_of: SharePreview
) -> Iterator[Event]:
    events: list[dg.AssetMaterialization] = []
    failed: dict[str, str] = {}
    tags_of = versions.tagger(context)
    for key in keys:
        try:
            published = publish(build_of(key))
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
    if len(context.job_def.nodes) > 1:
        # Steps downstream in this run wait for the step's output. Dagster reports
        # it with one data version for all partitions, so the true events follow it.
        yield dg.MaterializeResult()
        yield from events


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Raise the library's errors as failures that no retry can mend, with the text alone."""
    try:
        yield
    except GristmillError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def _log(context: dg.AssetExecutionContext, published: Published) -> None:
    what = "built" if published.rebuilt else "unchanged"
    context.log.info(f"{published.record.artifact}: {what}")
    for note in published.notes:
        context.log.info(note)
