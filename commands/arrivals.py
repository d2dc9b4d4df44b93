"""Arrivals without a sensor: report the drops of an inbox to the instance."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import dagster as dg

from assets.inbox import Inbox
from assets.versions import latest
from gristmill.inbox import present_drops
from gristmill.untrusted.errors import unreadable
from resources.lake import Lake
from sensors.raw_drops import arrival_events, links_of

log = logging.getLogger(__name__)


def register(instance: dg.DagsterInstance, lake: Lake, inbox: Inbox) -> Iterator[str]:
    """Report new and replaced drops of an inbox to the instance, and add their partitions.

    instance: the Dagster instance to report to.
    lake: the data root.
    inbox: the inbox to look into.

    Yields a line for each refused drop: its path below `drops/` and the reason.
    """
    links, wrong = links_of(lake)
    if wrong:
        yield wrong
    try:
        present = present_drops(lake.inbox(inbox.folder), inbox.refusal, inbox.shape, links)
    except OSError as error:
        yield unreadable(error)
        return
    if new := inbox.new_keys(instance, present.arrivals):
        instance.add_dynamic_partitions(str(inbox.dynamic), new)
    partitions = {
        arrival.key: next(iter(inbox.partitions_of(arrival.key))) for arrival in present.arrivals
    }
    known = latest(instance, inbox.raw_drop, sorted(set(partitions.values())))
    for arrival in present.arrivals:
        version, _ = known.get(partitions[arrival.key], (None, 0))
        if version != arrival.signature:
            for event in arrival_events(inbox, arrival):
                instance.report_runless_asset_event(event)
    for refusal in present.refusals:
        if refusal.trace:
            log.error("%s/%s: %s", inbox.folder, refusal.key, refusal.trace)
        yield f"{inbox.folder}/{refusal.key}: {refusal.reason}"
