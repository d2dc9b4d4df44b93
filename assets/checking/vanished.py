"""Drops that were taken and are gone: which an instance knows, and which of them were retired.

A drop with partitions of its own is retired by deleting these. Months and shards stay partitions,
so that an event on the raw asset says that the drop was retired.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Final

import dagster as dg

from assets.inbox import Inbox
from assets.versions import DATA_VERSION, latest_events, newest_records
from gristmill import keys
from gristmill.inbox import GONE, Standing
from gristmill.printable import command

_RETIRED: Final = "retired"
_MATERIALIZED: Final = dg.DagsterEventType.ASSET_MATERIALIZATION
_OBSERVED: Final = dg.DagsterEventType.ASSET_OBSERVATION


def vanished(
    instance: dg.DagsterInstance, inbox: Inbox, present: Collection[str]
) -> list[Standing]:
    """Returns the drops that the instance knows, and that are gone without being retired."""
    known = {}
    if inbox.dynamic is not None:
        keys_of_drops = set(instance.get_dynamic_partitions(inbox.dynamic)) - inbox.built_in_keys
        known = dict.fromkeys(keys_of_drops, "its partition is known and the drop is gone")
    if inbox.dynamic is None or (inbox.built_in_keys and inbox.starts is None):
        found = taken(instance, inbox, {*present, *known})
        known |= dict.fromkeys(found, "it was taken and is gone")
    return [
        Standing(
            key,
            GONE,
            0,
            f"{known[key]}: bring it back, or forget it with "
            f"`{command('retire', key if keys.refusal(key) is None else 'KEY')}`",
        )
        for key in sorted(known.keys() - set(present))
    ]


def taken(
    instance: dg.DagsterInstance, inbox: Inbox, besides: Collection[str] = ()
) -> dict[str, list[str]]:
    """Returns the drops that were taken and not retired, with the partitions that each is in.

    inbox: one with partitions of time, or static ones. besides: keys of drops to leave out.

    A drop that a later one has replaced in all of its partitions is none of them.
    """
    reported = instance.get_materialized_partitions(inbox.raw_drop)
    if inbox.is_by_drop:
        found = {key: [key] for key in reported if key not in besides}
    else:
        found = {}
        for key, event in _newest(instance, inbox, _MATERIALIZED, reported).items():
            materialized = event.asset_materialization
            place = materialized.metadata.get("path") if materialized else None
            drop = _drop_of(inbox, str(place.value)) if place else ""
            if drop and drop not in besides:
                found.setdefault(drop, []).append(key)
    observed = _newest(instance, inbox, _OBSERVED, [key for each in found.values() for key in each])
    retired = {
        key
        for key, event in observed.items()
        if event.asset_observation and _RETIRED in event.asset_observation.metadata
    }
    return {drop: sorted(each) for drop, each in found.items() if not retired.issuperset(each)}


def retire(
    instance: dg.DagsterInstance, inbox: Inbox, drop: str, partitions: Collection[str]
) -> None:
    """Say that a drop is gone on purpose. Its data version stays, so that nothing becomes stale.

    partitions: those that `taken` names.
    """
    for key, event in _newest(instance, inbox, _MATERIALIZED, partitions).items():
        tags = (event.asset_materialization.tags or {}) if event.asset_materialization else {}
        version = {name: value for name, value in tags.items() if name == DATA_VERSION}
        observation = dg.AssetObservation(
            asset_key=inbox.raw_drop,
            partition=key,
            description=f"the drop {drop} was retired: it is gone on purpose",
            metadata={_RETIRED: drop},
            tags=version,
        )
        instance.report_runless_asset_event(observation)


def _newest(
    instance: dg.DagsterInstance,
    inbox: Inbox,
    kind: dg.DagsterEventType,
    partitions: Collection[str],
) -> Mapping[str, dg.EventLogRecord]:
    """The newest event of a kind, by partition of the raw asset."""
    newest = latest_events(instance, inbox.raw_drop, sorted(partitions), kind)
    return newest_records(instance, inbox.raw_drop, newest, kind)


def _drop_of(inbox: Inbox, path: str) -> str:
    """The key of a drop by its path."""
    return inbox.shape.key_of(PurePath(path).name)
