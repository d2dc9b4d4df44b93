"""Arrivals without a sensor: report the drops of an inbox to the instance."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import dagster as dg

from assets.checking.arrivals import changed_evaluation, out_of_order
from assets.inbox import Inbox, add_partitions
from assets.versions import latest
from commands.graph import INBOXES
from gristmill.inbox import REFUSED, Standing, present_drops
from gristmill.layout import DROPS
from gristmill.settings.fields import nearest
from gristmill.untrusted.limits import unreadable
from resources.lake import Lake
from sensors.reports import arrival_events, changes_of

log = logging.getLogger(__name__)


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


def register(instance: dg.DagsterInstance, lake: Lake, inbox: Inbox) -> list[Standing]:
    """Report new and replaced drops of an inbox to the instance, and add their partitions."""
    links, _, wrong = lake.rules(inbox.folder)
    settings = [Standing("", REFUSED, 0, wrong)] if wrong else []
    try:
        present = present_drops(lake.inbox(inbox.folder), lake.asked(inbox.folder), inbox.shape)
    except OSError as error:
        return [*settings, Standing("", REFUSED, 0, unreadable(error))]
    settled = [arrival.key for arrival in present.arrivals]
    starts = [
        start
        for arrival in present.arrivals
        for start in inbox.starts_of(instance, arrival, settled)
    ]
    for name, new in inbox.additions(instance, present.arrivals, starts).items():
        add_partitions(instance, name, new)
    partitions = {arrival.key: inbox.partitions_of(arrival) for arrival in present.arrivals}
    keys = {key for of_drop in partitions.values() for key in of_drop}
    known = latest(instance, inbox.raw_drop, sorted(keys))
    for arrival in present.arrivals:
        of_drop = partitions[arrival.key]
        versions = {known.get(key, (None, 0))[0] for key in of_drop}
        if versions != {arrival.signature}:
            changes = changes_of(instance, inbox, arrival, of_drop, links)
            for event in arrival_events(inbox, arrival, of_drop, changes):
                instance.report_runless_asset_event(event)
    found = out_of_order(instance, inbox, present)
    if evaluation := changed_evaluation(instance, inbox, found):
        instance.report_runless_asset_event(evaluation)
    for refusal in present.refusals:
        if refusal.trace:
            log.error("%s/%s: %s", inbox.folder, refusal.key, refusal.trace)
    return [*settings, *found]
