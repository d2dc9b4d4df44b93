"""The sensor that starts work when a raw drop has landed, made once for every family."""

from collections.abc import Iterable, Sequence
from typing import Any

import dagster as dg

from assets.inbox import Inbox
from assets.versions import DATA_VERSION, latest
from gristmill.inbox import Arrival, Look, State, look, named_few
from resources import Lake

Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation

MOST_REQUESTS = 20
MOST_REFUSALS = 20
"""Refused drops that one tick tells of singly; of the others it tells the number."""
LOOK_SECONDS = 20.0
INTERVAL_SECONDS = 15


def raw_drop_sensor(inbox: Inbox) -> dg.SensorDefinition:
    """A sensor over `drops/<folder>/`: a drop that has settled starts the runs it feeds."""

    @dg.sensor(
        name=f"{inbox.folder}_drops",
        target=inbox.job or list(inbox.targets),
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Watches drops/{inbox.folder}/. {inbox.shape.settles} is taken, and its runs start. A "
            "drop that is replaced is built again. What cannot be a drop, or not yet, is "
            "reported with the reason."
        ),
    )
    def watch(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SensorResult:
        state = State.read(context.cursor)
        found = look(
            lake.inbox(inbox.folder),
            state,
            inbox.refuse,
            most=MOST_REQUESTS,
            seconds=LOOK_SECONDS,
            shape=inbox.shape,
        )
        for key, reason in _newly_refused(inbox, found):
            context.log.warning(f"{key}: refused: {reason}")
        arrivals, built = _told_apart(inbox, context.instance, found.arrivals)
        new = inbox.new_keys(context.instance, arrivals)
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(run_key=_run_key(arrival, key), partition_key=key)
                for arrival in arrivals
                for key in inbox.fed_by(arrival.key)
            ],
            dynamic_partitions_requests=_additions(inbox, new),
            asset_events=_events(inbox, arrivals, found),
            cursor=state.write(),
            skip_reason=None if arrivals else _nothing(found, built),
        )

    return watch


def _told_apart(
    inbox: Inbox, instance: dg.DagsterInstance, arrivals: Sequence[Arrival]
) -> tuple[list[Arrival], list[str]]:
    """Arrivals to build, and the keys of those that the command line has built already."""
    keys = sorted({key for arrival in arrivals for key in inbox.fed_by(arrival.key)})
    landed = latest(instance, inbox.raw_drop, keys)
    made = [latest(instance, asset.key, keys) for asset in inbox.targets]

    def is_built(arrival: Arrival, key: str) -> bool:
        version, event = landed.get(key, ("", 0))
        return version == arrival.signature and all(
            key in events and events[key][1] > event for events in made
        )

    to_build: list[Arrival] = []
    built: list[str] = []
    for arrival in arrivals:
        if all(is_built(arrival, key) for key in inbox.fed_by(arrival.key)):
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
    """What the instance is told of a drop that has landed, for each partition it feeds.

    Of an external asset Dagster takes the partition's health from its
    materializations, but from its observations whether what was built from it
    is stale; so it gets both, the observation first.
    """
    metadata: dict[str, Any] = {
        "path": dg.MetadataValue.path(arrival.path),
        "files": arrival.files,
        "bytes": arrival.bytes,
    }
    tags = {DATA_VERSION: arrival.signature}
    return [
        kind(asset_key=inbox.raw_drop, partition=key, metadata=metadata, tags=tags)
        for key in inbox.fed_by(arrival.key)
        for kind in (dg.AssetObservation, dg.AssetMaterialization)
    ]


def _events(inbox: Inbox, arrivals: Iterable[Arrival], found: Look) -> list[Event]:
    landed = [event for arrival in arrivals for event in arrival_events(inbox, arrival)]
    refused = [
        dg.AssetObservation(
            asset_key=inbox.raw_drop,
            description=f"refused: {reason}",
            metadata={"refused": key, "reason": reason},
        )
        for key, reason in _newly_refused(inbox, found)
    ]
    return [*landed, *refused]


def _newly_refused(inbox: Inbox, found: Look) -> list[tuple[str, str]]:
    """Key and reason of what no look has refused before, the many in a last line of their own."""
    new = [(refusal.key, refusal.reason) for refusal in found.refusals if refusal.is_new]
    if (more := len(new) - MOST_REFUSALS) > 0:
        told = f"refused for reasons like these; look into drops/{inbox.folder}/"
        return [*new[:MOST_REFUSALS], (f"and {more:,} more", told)]
    return new


def _nothing(found: Look, built: Sequence[str]) -> dg.SkipReason:
    said = []
    if built:
        said.append(f"built already: {named_few(built)}")
    if found.refusals:
        refused = [f"{refusal.key} is refused: {refusal.reason}" for refusal in found.refusals]
        said.append(named_few(refused, "; "))
    if found.arriving:
        said.append(f"still arriving: {named_few(found.arriving)}")
    return dg.SkipReason("; ".join(said) or "no new drop")
