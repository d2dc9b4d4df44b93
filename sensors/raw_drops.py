"""The sensor of an inbox: reports drops that have settled or are refused, and requests runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from assets import versions
from assets.checking.arrivals import changed_evaluation, out_of_order
from assets.inbox import Inbox, Start
from assets.publishing import FAILS_ALONE
from assets.versions import DATA_VERSION, latest
from gristmill.contract import GristmillError
from gristmill.data_root.states import DropStates
from gristmill.inbox import ARRIVING, Arrival, Look, State, look, named_few
from gristmill.inbox.listing import short_digest
from gristmill.layout import refuse_missing_root
from gristmill.markdown import escape
from gristmill.printable import plain
from resources import Lake
from sensors.unfinished import newest_answers, runs_again

MOST_REQUESTS = 20
"""Drops that one look takes, where each has a run of its own."""
LOOK_SECONDS = 20.0
INTERVAL_SECONDS = 15


def raw_drop_sensor(inbox: Inbox) -> dg.SensorDefinition:
    """Returns the sensor of an inbox: the drops that settle at the same look share a run.

    A partition that the run does not build gets a run of its own: see `unfinished.py`.
    """
    # A job has assets of the same partitions; runs of others are requested by their assets.
    target: Any = inbox.job or list(inbox.targets)
    aims = {"target": target} if inbox.starts is None else {"asset_selection": target}

    @dg.sensor(
        name=f"{inbox.name}_drops",
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Watches drops/{inbox.folder}/. {inbox.shape.settles} has arrived, and its runs "
            "start. A drop that was replaced is built again. A refused drop is reported with the "
            "reason."
        ),
        **aims,
    )
    def watch(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SensorResult | dg.SkipReason:
        try:
            refuse_missing_root(lake.root)
        except GristmillError as error:  # its drops are not gone
            return dg.SkipReason(plain(str(error)))
        state = State.read(context.cursor)
        *_, wrong = lake.rules(inbox.folder)
        if wrong:
            context.log.warning(wrong)
        seen = look(
            lake.inbox(inbox.folder),
            state,
            lake.asked(inbox.folder, by_person=False),
            most=max(MOST_REQUESTS, _most_together(inbox.targets)),
            seconds=LOOK_SECONDS,
            shape=inbox.shape,
        )
        for key, reason in newly_refused(inbox, seen):
            context.log.warning(f"{key}: refused: {reason}")
        for refusal in seen.refusals:
            if refusal.is_new and refusal.trace:
                context.log.error(f"{refusal.key}: {refusal.trace}")
        fresh = {arrival.key for arrival in seen.arrivals}
        again = list(runs_again(inbox, context.instance, lake, state, fresh))
        for _, reason in again:
            context.log.info(reason)
        requests = [request for request, _ in again]
        return _answer(inbox, context.instance, seen, state, requests, DropStates(lake.root))

    return watch


def _answer(
    inbox: Inbox,
    instance: dg.DagsterInstance,
    seen: Look,
    state: State,
    again: Sequence[dg.RunRequest],
    states: DropStates,
) -> dg.SensorResult:
    """What a look asks Dagster for; `again`: runs of drops that were taken before."""
    settled = [arrival.key for arrival in seen.arrivals]
    partitions = {arrival.key: inbox.partitions_of(arrival) for arrival in seen.arrivals}
    starts = {a.key: inbox.starts_of(instance, a, settled) for a in seen.arrivals}
    arrivals, built = _split_built(inbox, instance, seen.arrivals, partitions, starts, states)
    of_arrivals = [(arrival, start) for arrival in arrivals for start in starts[arrival.key]]
    wanted = [*(start for _, start in of_arrivals), *inbox.starts_of_made(states.root)]
    new = inbox.additions(instance, arrivals, wanted)
    requests = list(_requests(instance, of_arrivals, new))
    requested = {start.partition for _, start in of_arrivals if not start.waiting}
    requests += [request for request in again if request.partition_key not in requested]
    events = events_of(inbox, arrivals, partitions, seen)
    if seen.is_whole:
        found = out_of_order(instance, inbox, seen)
        evaluation = changed_evaluation(instance, inbox, found)
        events += [] if evaluation is None else [evaluation]
    waiting = [f"{start.partition} {start.waiting}" for _, start in of_arrivals if start.waiting]
    return dg.SensorResult(
        run_requests=requests,
        dynamic_partitions_requests=[
            dg.AddDynamicPartitionsRequest(name, keys) for name, keys in new.items()
        ],
        asset_events=events,
        cursor=state.write(),
        skip_reason=None if requests else _skip_reason(seen, built, arrivals, waiting),
    )


def _requests(
    instance: dg.DagsterInstance,
    starts: Iterable[tuple[Arrival, Start]],
    new: Mapping[str, Sequence[str]],
) -> Iterator[dg.RunRequest]:
    """Yields the runs: partitions of the same assets that follow each other share one."""
    together: dict[tuple[dg.AssetKey, ...], tuple[Start, dict[str, str]]] = {}
    for arrival, start in starts:
        if not start.waiting:
            assets = tuple(asset.key for asset in start.assets)
            # Several drops may start the same run: it starts once.
            _, run_keys = together.setdefault(assets, (start, {}))
            run_keys.setdefault(start.partition, _run_key(arrival, start.partition))
    for assets, (start, run_keys) in together.items():
        partitions = start.assets[0].partitions_def
        assert partitions is not None
        known = list(partitions.get_partition_keys(dynamic_partitions_store=instance))
        if isinstance(partitions, dg.DynamicPartitionsDefinition):
            known += new.get(str(partitions.name), ())
        for keys in versions.ranges(run_keys, known, _most_together(start.assets)):
            of_drops = [run_keys[key] for key in keys]
            is_alone = len(keys) == 1
            yield dg.RunRequest(
                run_key=of_drops[0] if is_alone else f"{keys[0]}...:{short_digest(str(of_drops))}",
                partition_key=keys[0] if is_alone else None,
                tags=None if is_alone else {**versions.run_tags(keys), FAILS_ALONE: "true"},
                # Without it, the list of runs has no target for the run.
                asset_selection=list(assets),
            )


def _most_together(assets: Sequence[dg.AssetsDefinition]) -> int:
    return versions.most_together(asset.backfill_policy for asset in assets)


def _split_built(
    inbox: Inbox,
    instance: dg.DagsterInstance,
    arrivals: Sequence[Arrival],
    partitions: Mapping[str, Collection[str]],
    starts: Mapping[str, Sequence[Start]],
    states: DropStates,
) -> tuple[list[Arrival], list[str]]:
    """Arrivals to build, and the keys of those that runs have answered already, as by command."""
    keys = sorted({key for arrival in arrivals for key in partitions[arrival.key]})
    reported = latest(instance, inbox.raw_drop, keys)
    targets = sorted({start.partition for each in starts.values() for start in each})
    answers = newest_answers(instance, inbox.targets, targets)

    def is_built(arrival: Arrival) -> bool:
        reports = [reported.get(key, ("", 0)) for key in partitions[arrival.key]]
        if any(version != arrival.signature for version, _ in reports):
            return False
        newest = max((event for _, event in reports), default=0)
        answered = [
            answers[asset.key].get(start.partition, 0)
            for start in starts[arrival.key]
            if not start.waiting
            for asset in start.assets
        ]
        # A command that finds new times alone reports the drop, and has nothing to build.
        return all(event > newest for event in answered) or (
            all(answered) and states.is_taken(arrival.path)
        )

    built = [arrival.key for arrival in arrivals if is_built(arrival)]
    return [arrival for arrival in arrivals if arrival.key not in built], built


def _run_key(arrival: Arrival, partition: str) -> str:
    return arrival.run_key if partition == arrival.key else f"{arrival.run_key}:{partition}"


def _skip_reason(
    seen: Look, built: Sequence[str], arrivals: Sequence[Arrival], waiting: Sequence[str]
) -> dg.SkipReason:
    idle = [
        f"{plain(drop.key, 200)} is {drop.state}: {plain(drop.reason, 400)}"
        for drop in seen.out_of_order
        if drop.state != ARRIVING
    ]
    reasons = [
        f"{head}{named_few(names, separator)}"
        for head, names, separator in (
            ("built already: ", built, ", "),
            ("arrived: ", [arrival.key for arrival in arrivals], ", "),
            ("", waiting, "; "),
            ("", idle, "; "),
            ("still arriving: ", seen.arriving, ", "),
        )
        if names
    ]
    return dg.SkipReason(plain("; ".join(reasons), 10_000) or "no new drop")


Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation

VERSION_SEEN = "Version of the arrival: by it Dagster knows whether assets downstream are stale."
MOST_REFUSALS = 20
"""Refused drops that one tick reports one by one; it reports only the number of the others."""


def arrival_events(
    inbox: Inbox, arrival: Arrival, partitions: Iterable[str]
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


def events_of(
    inbox: Inbox,
    arrivals: Iterable[Arrival],
    partitions: Mapping[str, Collection[str]],
    seen: Look,
) -> list[Event]:
    """Returns the events of one look: arrivals, and refusals that are new."""
    arrived = [
        event
        for arrival in arrivals
        for event in arrival_events(inbox, arrival, partitions[arrival.key])
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
