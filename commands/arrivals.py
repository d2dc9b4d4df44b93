"""Drops in the inboxes become known to the instance without a sensor."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from assets.inbox import Inbox
from assets.versions import latest
from gristmill.inbox import present_drops
from resources.lake import Lake
from sensors.raw_drops import arrival_events


def register(instance: dg.DagsterInstance, lake: Lake, inbox: Inbox) -> Iterator[str]:
    """Report the drops of `inbox` to the instance, new or replaced ones, and add their partitions.

    Yields a line for each refused drop: its path below `drops/` and the reason.
    """
    found = present_drops(lake.inbox(inbox.folder), inbox.refuse, inbox.shape)
    if new := inbox.new_keys(instance, found.arrivals):
        instance.add_dynamic_partitions(str(inbox.dynamic), new)
    partitions = {arrival.key: next(iter(inbox.fed_by(arrival.key))) for arrival in found.arrivals}
    known = latest(instance, inbox.raw_drop, sorted(set(partitions.values())))
    for arrival in found.arrivals:
        version, _ = known.get(partitions[arrival.key], (None, 0))
        if version != arrival.signature:
            for event in arrival_events(inbox, arrival):
                instance.report_runless_asset_event(event)
    for refusal in found.refusals:
        yield f"{inbox.folder}/{refusal.key}: {refusal.reason}"
