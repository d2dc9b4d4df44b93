"""Runs of several partitions: which go into one run, and the version tags of their events.

Dagster writes these tags itself for a step of one partition. For a step of several partitions it
knows only one data version, so this module makes the tags for each partition. Without the tags of
its inputs, a partition would show as stale. For an output Dagster reports every partition of the
run once more, without a fact of ours: so the output is one that it reports nothing for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import dagster as dg

_MATERIALIZED = dg.DagsterEventType.ASSET_MATERIALIZATION
# Partitions in one query: SQLite limits the variables of a statement.
_KEYS_IN_QUERY = 1000

DATA_VERSION = "dagster/data_version"
_USER_PROVIDED = "dagster/data_version_is_user_provided"
_CODE_VERSION = "dagster/code_version"
_INPUT_VERSION = "dagster/input_data_version"
_INPUT_POINTER = "dagster/input_event_pointer"
# The values that Dagster itself writes for an input without a version or an event.
_NO_VERSION, _NO_POINTER = "INITIAL", "NULL"


def tagger(
    context: dg.AssetExecutionContext, keys: Sequence[str]
) -> Callable[[str, str], dict[str, str]]:
    """Returns a function that makes the tags of a partition's event.

    The function takes a partition key and the data version of what was built. An upstream asset
    with the same partitions counts with the partition of the same key; one without partitions, or
    of which all partitions are an input, with its latest event.
    """
    spec = context.assets_def.get_asset_spec(context.asset_key)
    deps = [dep.asset_key for dep in spec.deps]
    whole = {
        dep.asset_key
        for dep in spec.deps
        if isinstance(dep.partition_mapping, dg.AllPartitionMapping)
    }
    of_inputs = input_tagger(context.instance, deps, keys, whole)
    code_version = spec.code_version or context.run.run_id
    return lambda key, data_version: version_tags(data_version, code_version) | of_inputs(key)


def version_tags(data_version: str, code_version: str) -> dict[str, str]:
    """Returns the tags of an event that say what was built, and by which code."""
    return {
        DATA_VERSION: data_version,
        _USER_PROVIDED: "true",
        _CODE_VERSION: code_version,
    }


def input_tagger(
    instance: dg.DagsterInstance,
    deps: Sequence[dg.AssetKey],
    keys: Sequence[str],
    whole: Collection[dg.AssetKey] = (),
) -> Callable[[str], dict[str, str]]:
    """Returns a function that takes a partition key and makes the tags of the event's inputs."""
    inputs = {asset: _input(instance, asset, () if asset in whole else keys) for asset in deps}

    def tags(key: str) -> dict[str, str]:
        event_tags: dict[str, str] = {}
        for asset, version_of in inputs.items():
            version, pointer = version_of(key)
            event_tags |= input_tags(asset, version, pointer)
        return event_tags

    return tags


def input_tags(asset: dg.AssetKey, version: str, pointer: str) -> dict[str, str]:
    """Returns the tags that name one input of an event."""
    name = asset.to_user_string()
    return {f"{_INPUT_VERSION}/{name}": version, f"{_INPUT_POINTER}/{name}": pointer}


def latest(
    instance: dg.DagsterInstance, asset: dg.AssetKey, keys: Sequence[str]
) -> dict[str, tuple[str, int]]:
    """Returns data version and storage id of each key's latest materialization."""
    newest = {}
    found = latest_events(instance, asset, keys)
    for start in range(0, len(keys), _KEYS_IN_QUERY):
        some = keys[start : start + _KEYS_IN_QUERY]
        events = {key: found[key] for key in some if key in found}
        versions = instance.event_log_storage.get_latest_tags_by_partition(
            asset, _MATERIALIZED, [DATA_VERSION], some
        )
        for key, event in events.items():
            newest[key] = versions.get(key, {}).get(DATA_VERSION, _NO_VERSION), event
    return newest


def latest_events(
    instance: dg.DagsterInstance,
    asset: dg.AssetKey,
    keys: Sequence[str],
    kind: dg.DagsterEventType = _MATERIALIZED,
) -> dict[str, int]:
    """Returns the storage id of each key's latest event of a kind; default: materializations."""
    events: dict[str, int] = {}
    for start in range(0, len(keys), _KEYS_IN_QUERY):
        some = set(keys[start : start + _KEYS_IN_QUERY])
        events |= instance.get_latest_storage_id_by_partition(asset, kind, some)
    return events


def newest_records(
    instance: dg.DagsterInstance,
    asset: dg.AssetKey,
    newest: Mapping[str, int],
    kind: dg.DagsterEventType = _MATERIALIZED,
) -> dict[str, dg.EventLogRecord]:
    """Returns the records of events by partition; `newest`: their storage ids, as of one kind."""
    is_observed = kind is dg.DagsterEventType.ASSET_OBSERVATION
    fetch = instance.fetch_observations if is_observed else instance.fetch_materializations
    ids, found = list(newest.values()), dict[int, dg.EventLogRecord]()
    for start in range(0, len(ids), _KEYS_IN_QUERY):
        some = ids[start : start + _KEYS_IN_QUERY]
        wanted = dg.AssetRecordsFilter(asset, storage_ids=some)
        found |= {each.storage_id: each for each in fetch(wanted, limit=len(some)).records}
    return {key: found[event] for key, event in newest.items() if event in found}


def newest_version(instance: dg.DagsterInstance, asset: dg.AssetKey) -> tuple[str, int] | None:
    """Returns data version and storage id of an asset's latest materialization, if there is one."""
    record = newest_event(instance, asset)
    if record is None:
        return None
    return tags_of(record).get(DATA_VERSION) or _NO_VERSION, record.storage_id


def newest_event(
    instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str | None = None
) -> dg.EventLogRecord | None:
    """Returns the latest materialization of a partition, by default of any; None without one."""
    keys = None if partition is None else [partition]
    wanted = dg.AssetRecordsFilter(asset, asset_partitions=keys)
    return next(iter(instance.fetch_materializations(wanted, limit=1).records), None)


def tags_of(record: dg.EventLogRecord | None) -> Mapping[str, str]:
    """The tags of a materialization; none without one."""
    event = record.asset_materialization if record is not None else None
    return (event.tags or {}) if event is not None else {}


def observed_since(
    instance: dg.DagsterInstance, asset: dg.AssetKey, keys: Sequence[str] | None
) -> dict[str | None, dg.AssetObservation]:
    """Returns the observations that are the latest events of their partitions.

    keys: partition keys; those whose latest materialization came later are left out. None: of an
        asset without partitions.
    """
    found: dict[str | None, dg.EventLogRecord] = {}
    if keys is None:
        built = newest_version(instance, asset)
        since = dg.AssetRecordsFilter(asset, after_storage_id=built[1] if built else None)
        records = instance.fetch_observations(since, limit=1).records
        found.update((None, record) for record in records)
    else:
        kind = dg.DagsterEventType.ASSET_OBSERVATION
        observed = latest_events(instance, asset, keys, kind)
        made = latest_events(instance, asset, list(observed))
        later = {key: event for key, event in observed.items() if event > made.get(key, 0)}
        found.update(newest_records(instance, asset, later, kind).items())
    return {key: each.asset_observation for key, each in found.items() if each.asset_observation}


def outdated(
    instance: dg.DagsterInstance,
    asset: dg.AssetKey,
    inputs: Sequence[dg.AssetKey],
    events: Mapping[str, int],
) -> set[str]:
    """Returns the partitions whose latest event names another version of an input than it has now.

    Dagster's pages call them stale.
    """
    suspects = {
        key: events[key]
        for parent in inputs
        for key, event in latest_events(instance, parent, list(events)).items()
        if event > events[key]  # without a later event it is as the asset found it
    }
    now = {parent: latest(instance, parent, list(suspects)) for parent in inputs if suspects}
    found = set()
    for key, record in newest_records(instance, asset, suspects).items():
        tags = tags_of(record)
        if any(
            key in versions
            and tags.get(f"{_INPUT_VERSION}/{parent.to_user_string()}") != versions[key][0]
            for parent, versions in now.items()
        ):
            found.add(key)
    return found


def _input(
    instance: dg.DagsterInstance, asset: dg.AssetKey, keys: Sequence[str]
) -> Callable[[str], tuple[str, str]]:
    """Version and pointer of `asset` as an input, by partition key; the latest for other keys."""
    by_partition = latest(instance, asset, keys)

    @cache
    def unpartitioned() -> tuple[str, str]:
        version, event = newest_version(instance, asset) or (_NO_VERSION, _NO_POINTER)
        return version, str(event)

    def of(key: str) -> tuple[str, str]:
        if key not in by_partition:
            return unpartitioned()
        version, event = by_partition[key]
        return version, str(event)

    return of


PARTITION: Final = "dagster/partition"
RANGE: Final = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
"""Tags of a run, by which Dagster knows its partitions."""

MOST: Final = 100
"""Most partitions of a run, where the asset's policy names no number."""

UNREPORTED: Final = "__source_asset_observation__"
"""Metadata of an output that Dagster reports no asset for; it has no public name.

`tests/assets/test_versions.py` fails where a release of Dagster does without it: the events of
the partitions are then reported once more.
"""


def most_together(policies: Iterable[dg.BackfillPolicy | None]) -> int:
    """Returns how many partitions one run of some assets may have."""
    allowed = (
        1 if policy is None else policy.max_partitions_per_run or MOST for policy in policies
    )
    return min(MOST, *allowed)


def ranges(wanted: Collection[str], known: Sequence[str], most: int) -> Iterator[list[str]]:
    """Yields the wanted partitions, those of one run together.

    known: all partition keys of the asset, in its order. A run takes all keys from its first to
        its last one, so one that is not wanted ends a run.
    """
    together: list[str] = []
    for key in known:
        if together and (key not in wanted or len(together) == most):
            yield together
            together = []
        if key in wanted:
            together.append(key)
    if together:
        yield together


def run_tags(keys: Sequence[str | None]) -> Mapping[str, str]:
    """Returns the tags of a run of some partitions."""
    first, last = keys[0], keys[-1]
    if first is None or last is None:
        return {}
    return {PARTITION: first} if len(keys) == 1 else dict(zip(RANGE, (first, last), strict=True))


def last_run(
    instance: dg.DagsterInstance, assets: Iterable[dg.AssetKey], partition: str
) -> dg.RunRecord | None:
    """Returns the newest run that was to build a partition; None if the instance has none."""
    planned = [
        found
        for asset in assets
        if (found := instance.get_latest_planned_materialization_info(asset, partition)) is not None
    ]
    if not planned:
        return None
    return instance.get_run_record_by_id(max(planned, key=lambda one: one.storage_id).run_id)


def step_output(
    context: dg.AssetExecutionContext, events: Sequence[dg.AssetMaterialization]
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    """Yields the output of a step, and again the events that came before it where it hides them."""
    yield dg.MaterializeResult(metadata={UNREPORTED: True})
    if _is_hidden(context, events[-1]):
        yield from events


def _is_hidden(context: dg.AssetExecutionContext, event: dg.AssetMaterialization) -> bool:
    """Whether this run has reported something else of the partition since."""
    newest = newest_event(context.instance, event.asset_key, str(event.partition))
    if newest is None or newest.run_id != context.run.run_id:
        return False
    return tags_of(newest).get(DATA_VERSION) != (event.tags or {})[DATA_VERSION]
