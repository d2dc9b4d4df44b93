"""The events by which an inbox reports what a look found: arrivals and refusals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets.inbox import Inbox
from assets.versions import DATA_VERSION
from gristmill.contract import GristmillError
from gristmill.inbox import Arrival, Look, changed_since, named_few
from gristmill.markdown import escape
from gristmill.printable import plain
from gristmill.untrusted.files import LinkRule

Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation

VERSION_SEEN = "Version of the arrival: by it Dagster knows whether assets downstream are stale."
MOST_REFUSALS = 20
"""Refused drops that one tick reports one by one; it reports only the number of the others."""


def arrival_events(
    inbox: Inbox, arrival: Arrival, partitions: Iterable[str], changes: str = ""
) -> list[dg.AssetMaterialization | dg.AssetObservation]:
    """Returns the events that report an arrival to the instance, for each partition of the drop.

    Dagster shows the status of an external asset's partition by its materializations, but decides
    by its observations whether the assets downstream are stale. So each partition gets both events,
    the observation first. It has the version alone: pages and plots show the arrival once.
    """
    metadata: dict[str, Any] = {
        "path": dg.MetadataValue.path(arrival.path),
        "files": arrival.files,
        "bytes": arrival.bytes,
    }
    if changes:
        metadata["changes"] = changes
    if arrival.notes:
        metadata["notes"] = "; ".join(arrival.notes)
    tags = {DATA_VERSION: arrival.signature}
    events: list[dg.AssetMaterialization | dg.AssetObservation] = []
    for key in partitions:
        seen: dict[str, Any] = {"asset_key": inbox.raw_drop, "partition": key, "tags": tags}
        events += [
            dg.AssetObservation(**seen, description=VERSION_SEEN),
            dg.AssetMaterialization(**seen, metadata=metadata),
        ]
    return events


def changes_of(
    instance: dg.DagsterInstance,
    inbox: Inbox,
    arrival: Arrival,
    partitions: Collection[str],
    links: LinkRule,
) -> str:
    """Returns by how much a drop grew or shrank since it was taken before, and in which files."""
    if not partitions:
        return ""
    filter_ = dg.AssetRecordsFilter(
        asset_key=inbox.raw_drop, asset_partitions=[next(iter(partitions))]
    )
    records = instance.fetch_materializations(filter_, limit=1).records
    before = records[0].asset_materialization if records else None
    if before is None or (before.tags or {}).get(DATA_VERSION) == arrival.signature:
        return ""
    known = ((name, before.metadata.get(name)) for name in ("files", "bytes"))
    counts = {name: value.value for name, value in known if value is not None}
    counted = [
        _difference(getattr(arrival, name) - count, name)
        for name, count in counts.items()
        if isinstance(count, int)
    ]
    when = datetime.fromtimestamp(records[0].timestamp, UTC)
    try:
        names = changed_since(arrival.path, int(records[0].timestamp * 1e9), links)
    except (GristmillError, OSError):
        names = []  # it changes again: the next look sees what there is
    changed = [f"new or changed: {named_few(names)}"] if names else []
    since = f"since it was taken on {when:%Y-%m-%d %H:%M} UTC"
    return plain(f"{since}: {'; '.join([*counted, *changed])}")


def _difference(more: int, what: str) -> str:
    if more == 0:
        return f"as many {what}"
    counted = what.removesuffix("s") if abs(more) == 1 else what
    return f"{abs(more):,} {counted} {'more' if more > 0 else 'fewer'}"


def events_of(
    inbox: Inbox,
    arrivals: Iterable[Arrival],
    partitions: Mapping[str, Collection[str]],
    seen: Look,
    changes: Mapping[str, str],
) -> list[Event]:
    """Returns the events of one look: arrivals, and refusals that are new."""
    arrived = [
        event
        for arrival in arrivals
        for event in arrival_events(
            inbox, arrival, partitions[arrival.key], changes.get(arrival.key, "")
        )
    ]
    refused = [
        dg.AssetObservation(
            asset_key=inbox.raw_drop,
            description=f"refused: {escape(reason)}",  # the UI shows it as Markdown
            metadata={"refused": key, "reason": reason},
        )
        for key, reason in newly_refused(inbox, seen)
    ]
    return [*arrived, *refused]


def newly_refused(inbox: Inbox, seen: Look) -> list[tuple[str, str]]:
    """Returns key and reason of drops that no look refused before; many are counted."""
    new = [
        (plain(refusal.key, 200), plain(refusal.reason))
        for refusal in seen.refusals
        if refusal.is_new
    ]
    if (more := len(new) - MOST_REFUSALS) > 0:
        summary = f"refused for similar reasons; look into drops/{inbox.folder}/"
        return [*new[:MOST_REFUSALS], (f"and {more:,} more", summary)]
    return new
