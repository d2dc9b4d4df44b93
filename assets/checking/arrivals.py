"""The check `arrivals` of each raw asset: which drops are not in order or are gone, and why.

A drop that is gone with partitions of its own is retired by deleting these. Months and shards stay
partitions, so that an event on the raw asset says that the drop was retired.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Final

import dagster as dg

from assets.checking.evaluations import Target, newest_target
from assets.inbox import Inbox
from assets.versions import DATA_VERSION, latest, latest_events, newest_records
from gristmill import keys, markdown
from gristmill.inbox import GONE, READY, REFUSED, Look, Standing, named_few, present_drops
from gristmill.layout import refuse_missing_root
from gristmill.printable import breakable, command, plain
from resources import Lake

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

    A drop that a later one has replaced in all of its partitions is not one of them.
    """
    reported = instance.get_materialized_partitions(inbox.raw_drop)
    if inbox.is_by_drop:
        found = {key: [key] for key in reported if key not in besides}
    else:
        found = {}
        for key, event in _newest(instance, inbox, _MATERIALIZED, reported).items():
            materialized = event.asset_materialization
            place = materialized.metadata.get("path") if materialized else None
            drop = inbox.shape.key_of(PurePath(str(place.value)).name) if place else ""
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
    """Say that a drop is gone on purpose. Its data version stays, so that nothing becomes stale."""
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


NAME: Final = "arrivals"
_MOST_ROWS: Final = 200
_TABLE: Final = "drops"


def arrivals_check(inbox: Inbox) -> dg.AssetChecksDefinition:
    """Returns the check `arrivals` of the raw asset of an inbox."""

    @dg.asset_check(
        asset=inbox.raw_drop,
        name=NAME,
        description=f"Names each drop in drops/{inbox.folder}/ that is refused, gone, arriving, "
        "read by nothing, or ready and not taken, with the reason. A refused drop is an error, "
        "which the lineage shows; the others are warnings. Its sensor evaluates it when something "
        "changes; executed by itself it looks at the inbox.",
    )
    def arrivals(context: dg.AssetCheckExecutionContext, lake: Lake) -> dg.AssetCheckResult:
        refuse_missing_root(lake.root)  # its drops are not gone
        is_known = is_taken(context.instance, inbox)
        seen = present_drops(lake.inbox(inbox.folder), lake.asked(inbox.folder), inbox.shape)
        found = out_of_order(context.instance, inbox, seen)
        found += [
            Standing(drop.key, READY, 0, "its sensor has not taken it yet: see its last tick")
            for drop in seen.arrivals
            if not is_known(drop.key, drop.signature)
        ]
        return dg.AssetCheckResult(**_result(inbox, found))

    return arrivals


def out_of_order(instance: dg.DagsterInstance, inbox: Inbox, seen: Look) -> list[Standing]:
    """Returns the drops of an inbox that are not in order, those that are gone included."""
    return [*seen.out_of_order, *vanished(instance, inbox, seen.present)]


def changed_evaluation(
    instance: dg.DagsterInstance, inbox: Inbox, found: Sequence[Standing]
) -> dg.AssetCheckEvaluation | None:
    """Returns the evaluation to report; None where the last one says the same.

    After new arrivals there is one that says the same, since Dagster shows an evaluation of an
    earlier event of the asset as missing.
    """
    target = newest_target(instance, inbox.raw_drop)
    evaluation = dg.AssetCheckEvaluation(
        asset_key=inbox.raw_drop,
        check_name=NAME,
        target_materialization_data=target,
        **_result(inbox, found),
    )
    check = dg.AssetCheckKey(inbox.raw_drop, NAME)
    record = instance.event_log_storage.get_latest_asset_check_execution_by_key([check]).get(check)
    before = record.evaluation if record is not None else None
    if before is None or _id(before.target_materialization_data) != _id(target):
        return evaluation
    return evaluation if _said(before) != _said(evaluation) else None


def _id(target: Target | None) -> int | None:
    return None if target is None else target.storage_id


def is_taken(instance: dg.DagsterInstance, inbox: Inbox) -> Callable[[str, str], bool]:
    """Returns a function: whether the drop of a key was taken before with a signature."""
    if not inbox.is_by_drop:
        fixed = inbox.partitions.get_partition_keys(dynamic_partitions_store=instance)
        versions = {version for version, _ in latest(instance, inbox.raw_drop, fixed).values()}
        return lambda _key, signature: signature in versions
    reported = sorted(instance.get_materialized_partitions(inbox.raw_drop))
    known = latest(instance, inbox.raw_drop, reported)
    return lambda key, signature: known.get(key, ("", 0))[0] == signature


def _result(inbox: Inbox, found: Sequence[Standing]) -> dict[str, Any]:
    """Arguments of a result and of an evaluation."""
    rows = [
        dg.TableRecord(
            {
                "drop": plain(drop.key, 200),
                "state": drop.state,
                "since": _time(drop.since),
                "reason": breakable(plain(drop.reason, 1000)),
            }
        )
        for drop in found[:_MOST_ROWS]
    ]
    metadata: dict[str, Any] = {"drops to look at": len(found)}
    if rows:
        columns = [dg.TableColumn(name) for name in ("drop", "state", "since", "reason")]
        metadata[_TABLE] = dg.MetadataValue.table(rows, dg.TableSchema(columns))
    named = [f"{plain(d.key, 200)} ({d.state})" for d in found]
    description = (
        f"{len(found)} in drops/{inbox.folder}/ not in order: {named_few(named)}"
        if found
        else f"all drops in drops/{inbox.folder}/ are complete and taken"
    )
    return {
        "passed": not found,
        # The lineage counts errors in the box of a group, and no warnings.
        "severity": dg.AssetCheckSeverity.ERROR
        if any(drop.state == REFUSED for drop in found)
        else dg.AssetCheckSeverity.WARN,
        "description": markdown.escape(description),  # the UI shows it as Markdown
        "metadata": metadata,
    }


def _said(evaluation: dg.AssetCheckEvaluation) -> object:
    """What an evaluation says, without the times: each look may see others."""
    table = evaluation.metadata.get(_TABLE)
    rows = table.records if isinstance(table, dg.TableMetadataValue) else []
    said = [[row.data[name] for name in ("drop", "state", "reason")] for row in rows]
    return evaluation.passed, evaluation.severity, evaluation.description, said


def _time(since: int) -> str:
    return f"{datetime.fromtimestamp(since / 1000, UTC):%Y-%m-%d %H:%M} UTC" if since else ""
