"""Drops that were taken and are not built: their runs are requested again.

A run that was interrupted (Ctrl-C, a kill, a power loss) is requested again, and so are targets
that nobody asked for since what they are built from was built. A partition that a run of several
did not build gets a run of its own. A run of one partition that failed by an error, and one that a
person cancelled, are left alone. A partition is answered by what was built, or by the report why
it is not. Source: docs/drops.md#interrupted-runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import dagster as dg

from assets.inbox import Inbox, Start
from assets.publishing import NOT_BUILT
from assets.versions import (
    DATA_VERSION,
    RANGE,
    last_run,
    latest_events,
    newest_event,
    observed_since,
    tags_of,
)
from gristmill.contract import GristmillError
from gristmill.inbox import Arrival, State
from gristmill.inbox.listing import short_digest
from resources import Lake


def newest_answers(
    instance: dg.DagsterInstance, targets: Sequence[dg.AssetsDefinition], keys: Sequence[str]
) -> dict[dg.AssetKey, dict[str, int]]:
    """Returns the number of the newest answer for each partition of some assets.

    keys: partition keys; those without an answer are left out of the result.

    An answer is a materialization, or a later report "not built", such as that of the token shards
    of a corpus whose terms forbid training. What is built from such a partition has its answer,
    since its step is skipped.
    """
    answers: dict[dg.AssetKey, dict[str, int]] = {}
    not_built: dict[dg.AssetKey, dict[str, int]] = {}
    for asset in targets:
        made = latest_events(instance, asset.key, keys)
        said = observed_since(instance, asset.key, keys)
        status = {key: seen.metadata.get("status") for key, seen in said.items()}
        refused = [key for key, each in status.items() if key and each and each.value == NOT_BUILT]
        observed = dg.DagsterEventType.ASSET_OBSERVATION
        reports = latest_events(instance, asset.key, refused, observed)
        for each in inputs_among(asset, targets):
            for key, event in not_built.get(each.key, {}).items():
                if event > max(made.get(key, 0), reports.get(key, 0)):
                    reports[key] = event
        not_built[asset.key] = reports
        answers[asset.key] = made | reports
    return answers


def inputs_among(
    asset: dg.AssetsDefinition, among: Sequence[dg.AssetsDefinition]
) -> list[dg.AssetsDefinition]:
    """Returns those of some assets that an asset is built from."""
    keys = {dep.asset_key for spec in asset.specs for dep in spec.deps}
    return [each for each in among if each.key in keys]


MOST_TRIES: Final = 3
"""Runs that are requested for one partition while nothing of it was built meanwhile."""
MOST_ASKED: Final = 20
"""Partitions whose runs one tick looks into; the others come in the next ticks."""
_LEFT: Final = 1000  # in place of the number of tries, where a run is left alone
_UNDER_WAY: Final = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class Behind:
    """A partition with targets that are not built from what there is.

    sources: what they are built from and is there, with the newest event's number of each.
    """

    partition: str
    assets: tuple[dg.AssetsDefinition, ...]
    sources: tuple[tuple[dg.AssetKey, str, int], ...]
    form: str


def runs_again(
    inbox: Inbox, instance: dg.DagsterInstance, lake: Lake, state: State, fresh: Collection[str]
) -> Iterator[tuple[dg.RunRequest, str]]:
    """Yield the runs to request again, each with the reason, and bring `state` up to date."""
    settled = [key for key in state.settled if key not in fresh]
    assets = [inbox.raw_drop, *(asset.key for asset in inbox.targets)]
    records = instance.get_asset_records(assets)
    newest = {
        record.asset_entry.asset_key.to_user_string(): (
            record.asset_entry.last_materialization_storage_id
        )
        for record in records
    }
    token = short_digest(f"{sorted(newest.items())};{sorted(settled)}")
    if state.built == token:
        return  # nothing was late, and nothing was built or taken since
    behind = {each.partition: each for each in _behind(inbox, instance, lake, settled)}
    state.built = "" if behind else token
    state.asked = {key: asked for key, asked in state.asked.items() if key in behind}
    open_ = [key for key in sorted(behind) if _tries(state, behind[key]) < MOST_TRIES]
    start = next((at for at, key in enumerate(open_) if key >= state.asked_from), 0)
    looked_at = [*open_[start:], *open_[:start]][:MOST_ASKED]
    state.asked_from = "" if len(open_) <= MOST_ASKED else f"{looked_at[-1]}\0"
    for key in looked_at:
        each = behind[key]
        each_tries = _tries(state, each)
        reason = _reason(inbox, instance, each)
        if reason is None:
            continue
        if not reason:
            state.asked[key] = each.form, _LEFT
            continue
        state.asked[key] = each.form, each_tries + 1
        request = dg.RunRequest(
            run_key=f"{key}:{each.form}:{each_tries + 1}",
            partition_key=key,
            asset_selection=[asset.key for asset in each.assets],
        )
        yield request, f"{reason}; requested, {each_tries + 1} of at most {MOST_TRIES} times"


def _tries(state: State, behind: Behind) -> int:
    form, tries = state.asked.get(behind.partition, ("", 0))
    return tries if form == behind.form else 0


def _behind(
    inbox: Inbox, instance: dg.DagsterInstance, lake: Lake, settled: Sequence[str]
) -> Iterator[Behind]:
    """Yields the partitions of settled drops that have targets older than what is there."""
    wanted = list(_wanted(inbox, instance, lake, settled))
    if not wanted:
        return
    partitions = sorted({start.partition for start, _ in wanted})
    raw = latest_events(instance, inbox.raw_drop, sorted({source for _, source in wanted}))
    newest = newest_answers(instance, inbox.targets, partitions)
    for start, source in wanted:
        key = start.partition
        if source not in raw:
            continue  # the arrival was not reported to this instance
        of_key = {asset.key: newest[asset.key].get(key, 0) for asset in start.assets}
        late: list[dg.AssetsDefinition] = []
        sources = {(inbox.raw_drop, source, raw[source])}
        for asset in start.assets:
            made = of_key[asset.key]
            inputs = inputs_among(asset, start.assets)
            is_late = made < raw[source] or any(
                each in late or made < of_key[each.key] for each in inputs
            )
            if is_late:
                late.append(asset)
                sources |= {(each.key, key, of_key[each.key]) for each in inputs}
        late_keys = {asset.key for asset in late}
        if late:
            stands = ";".join(f"{name.to_user_string()}={at}" for name, at in of_key.items())
            yield Behind(
                key,
                tuple(late),
                tuple(sorted(each for each in sources if each[0] not in late_keys)),
                short_digest(f"{raw[source]};{stands}"),
            )


def _wanted(
    inbox: Inbox, instance: dg.DagsterInstance, lake: Lake, settled: Sequence[str]
) -> Iterator[tuple[Start, str]]:
    """Yields what the settled drops are built into, and the raw asset's partition of each."""
    folder, ending = lake.inbox(inbox.folder), "".join(inbox.shape.endings[:1])
    seen: set[tuple[str, str]] = set()
    for key in settled:
        drop = Arrival(key, folder / f"{key}{ending}", "", 0, 0, "")
        try:
            starts = inbox.starts_of(instance, drop, settled)
        except (GristmillError, OSError):
            continue  # it changed: it arrives again
        for start in starts:
            name = (start.partition, start.assets[0].key.to_user_string())
            if name not in seen and not start.waiting.startswith("waits"):
                seen.add(name)
                yield start, key if inbox.starts is not None else start.partition


def _reason(inbox: Inbox, instance: dg.DagsterInstance, behind: Behind) -> str | None:
    """Why targets are to be built; empty where they are left alone, None where that is open."""
    newest = last_run(instance, [asset.key for asset in inbox.targets], behind.partition)
    if newest is not None and newest.dagster_run.status in _UNDER_WAY:
        return None
    last = last_run(instance, [asset.key for asset in behind.assets], behind.partition)
    if _is_current(instance, behind):
        return ""
    source = newest_event(instance, *max(behind.sources, key=lambda each: each[2])[:2])
    if last is None or (
        source is not None
        and source.run_id != last.dagster_run.run_id
        and (last.end_time or 0.0) < source.timestamp
    ):
        named = ", ".join(asset.key.to_user_string() for asset in behind.assets)
        return f"{behind.partition}: {named} not built since its inputs were"
    run = last.dagster_run
    if not _is_repeated(instance, run):
        return ""
    ended = "did not build it" if RANGE[0] in run.tags else "was interrupted"
    return f"{behind.partition}: its run {run.run_id[:8]} {ended}"


def _is_current(instance: dg.DagsterInstance, behind: Behind) -> bool:
    """Whether the targets are built from the versions that there are, in spite of later events."""
    versions: dict[dg.AssetKey, set[str | None]] = {}
    for key, partition, _ in behind.sources:
        version = tags_of(newest_event(instance, key, partition)).get(DATA_VERSION, "")
        # In a run of one partition Dagster writes the hash of the version instead.
        versions[key] = {version, hashlib.sha256(version.encode()).hexdigest()}
    for asset in behind.assets:
        tags = tags_of(newest_event(instance, asset.key, behind.partition))
        inputs = {dep.asset_key for spec in asset.specs for dep in spec.deps} & set(versions)
        if not inputs or any(
            tags.get(f"dagster/input_data_version/{key.to_user_string()}") not in versions[key]
            for key in inputs
        ):
            return False
    return True


def _is_repeated(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether a run ended by no error of this very partition, and no person cancelled it."""
    if run.status is dg.DagsterRunStatus.CANCELED:
        asked = dg.DagsterEventType.RUN_CANCELING
        return not instance.all_logs(run.run_id, of_type=asked)
    if RANGE[0] in run.tags:
        return True  # the error, if there was one, may be that of another partition
    if run.status is not dg.DagsterRunStatus.FAILURE:
        return False
    failures = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    sources = [
        entry.dagster_event.step_failure_data.error_source
        for entry in failures
        if entry.dagster_event is not None
    ]
    return all(source is not None and source.name == "INTERRUPT" for source in sources)
