"""The sensor of an inbox: reports drops that have settled, and requests their runs."""

from collections.abc import Iterable, Sequence
from typing import Any

import dagster as dg

from assets.inbox import Inbox
from assets.versions import DATA_VERSION, latest
from gristmill.contract import GristmillError
from gristmill.inbox import Arrival, Look, State, look, named_few
from gristmill.markdown import escape
from gristmill.printable import plain
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from resources import Lake

Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation

MOST_REQUESTS = 20
MOST_REFUSALS = 20
"""Refused drops that one tick reports one by one; it reports only the number of the others."""
LOOK_SECONDS = 20.0
INTERVAL_SECONDS = 15


def raw_drop_sensor(inbox: Inbox) -> dg.SensorDefinition:
    """Returns the sensor of an inbox: one run for each partition of a drop that has settled.

    inbox: the folder to watch, and the assets to build.
    """

    @dg.sensor(
        name=f"{inbox.folder}_drops",
        target=inbox.job or list(inbox.targets),
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Watches drops/{inbox.folder}/. {inbox.shape.settles} has arrived, and its runs "
            "start. A drop that was replaced is built again. A refused drop is reported with the "
            "reason."
        ),
    )
    def watch(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SensorResult:
        state = State.read(context.cursor)
        links, wrong = links_of(lake)
        if wrong:
            context.log.warning(wrong)
        seen = look(
            lake.inbox(inbox.folder),
            state,
            inbox.refusal,
            most=MOST_REQUESTS,
            seconds=LOOK_SECONDS,
            shape=inbox.shape,
            links=links,
        )
        for key, reason in _newly_refused(inbox, seen):
            context.log.warning(f"{key}: refused: {reason}")
        for refusal in seen.refusals:
            if refusal.is_new and refusal.trace:
                context.log.error(f"{refusal.key}: {refusal.trace}")
        arrivals, built = _split_built(inbox, context.instance, seen.arrivals)
        new = inbox.new_keys(context.instance, arrivals)
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(run_key=_run_key(arrival, key), partition_key=key)
                for arrival in arrivals
                for key in inbox.partitions_of(arrival.key)
            ],
            dynamic_partitions_requests=_additions(inbox, new),
            asset_events=_events(inbox, arrivals, seen),
            cursor=state.write(),
            skip_reason=None if arrivals else _skip_reason(seen, built),
        )

    return watch


def links_of(lake: Lake) -> tuple[LinkRule, str]:
    """Returns what happens to links in drops, and what is wrong with that setting.

    Where it cannot be read, links are refused, so that drops without links are still taken.

    lake: the data root.
    """
    try:
        return lake.link_rule(), ""
    except (GristmillError, OSError) as error:
        return REFUSE_LINKS, f"{error}: links in drops are refused"


def _split_built(
    inbox: Inbox, instance: dg.DagsterInstance, arrivals: Sequence[Arrival]
) -> tuple[list[Arrival], list[str]]:
    """Arrivals to build, and the keys of arrivals that the command line has built already."""
    keys = sorted({key for arrival in arrivals for key in inbox.partitions_of(arrival.key)})
    reported = latest(instance, inbox.raw_drop, keys)
    materialized = [latest(instance, asset.key, keys) for asset in inbox.targets]

    def is_built(arrival: Arrival, key: str) -> bool:
        version, event = reported.get(key, ("", 0))
        return version == arrival.signature and all(
            key in events and events[key][1] > event for events in materialized
        )

    to_build: list[Arrival] = []
    built: list[str] = []
    for arrival in arrivals:
        if all(is_built(arrival, key) for key in inbox.partitions_of(arrival.key)):
            built.append(arrival.key)
        else:
            to_build.append(arrival)
    return to_build, built


def _additions(inbox: Inbox, keys: list[str]) -> list[dg.AddDynamicPartitionsRequest]:
    return [dg.AddDynamicPartitionsRequest(inbox.dynamic, keys)] if inbox.dynamic and keys else []


def _run_key(arrival: Arrival, partition: str) -> str:
    return arrival.run_key if partition == arrival.key else f"{arrival.run_key}:{partition}"


def arrival_events(
    inbox: Inbox, arrival: Arrival
) -> list[dg.AssetMaterialization | dg.AssetObservation]:
    """Returns the events that report an arrival to the instance, for each partition of the drop.

    Dagster shows the status of an external asset's partition by its materializations, but
    decides by its observations whether the assets downstream are stale. So each partition gets
    both events, the observation first.

    inbox: the inbox of the drop.
    arrival: the drop that has settled.
    """
    metadata: dict[str, Any] = {
        "path": dg.MetadataValue.path(arrival.path),
        "files": arrival.files,
        "bytes": arrival.bytes,
    }
    if arrival.notes:
        metadata["notes"] = "; ".join(arrival.notes)
    tags = {DATA_VERSION: arrival.signature}
    return [
        kind(asset_key=inbox.raw_drop, partition=key, metadata=metadata, tags=tags)
        for key in inbox.partitions_of(arrival.key)
        for kind in (dg.AssetObservation, dg.AssetMaterialization)
    ]


def _events(inbox: Inbox, arrivals: Iterable[Arrival], seen: Look) -> list[Event]:
    arrived = [event for arrival in arrivals for event in arrival_events(inbox, arrival)]
    refused = [
        dg.AssetObservation(
            asset_key=inbox.raw_drop,
            description=f"refused: {escape(reason)}",  # the UI shows it as Markdown
            metadata={"refused": key, "reason": reason},
        )
        for key, reason in _newly_refused(inbox, seen)
    ]
    return [*arrived, *refused]


def _newly_refused(inbox: Inbox, seen: Look) -> list[tuple[str, str]]:
    """Key and reason of drops that no look refused before; more than the limit are counted."""
    new = [
        (plain(refusal.key, 200), plain(refusal.reason))
        for refusal in seen.refusals
        if refusal.is_new
    ]
    if (more := len(new) - MOST_REFUSALS) > 0:
        summary = f"refused for similar reasons; look into drops/{inbox.folder}/"
        return [*new[:MOST_REFUSALS], (f"and {more:,} more", summary)]
    return new


def _skip_reason(seen: Look, built: Sequence[str]) -> dg.SkipReason:
    reasons = []
    if built:
        reasons.append(f"built already: {named_few(built)}")
    if seen.refusals:
        refused = [
            f"{plain(refusal.key, 200)} is refused: {plain(refusal.reason, 400)}"
            for refusal in seen.refusals
        ]
        reasons.append(named_few(refused, "; "))
    if seen.arriving:
        reasons.append(f"still arriving: {named_few(seen.arriving)}")
    return dg.SkipReason(plain("; ".join(reasons), 10_000) or "no new drop")
