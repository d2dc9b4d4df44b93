"""The check `arrivals` of each raw asset: which drops of an inbox are not in order, and why."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg

from assets.checking.evaluations import Target, newest_target
from assets.checking.vanished import vanished
from assets.inbox import Inbox
from assets.versions import latest
from gristmill import markdown
from gristmill.inbox import READY, REFUSED, Look, Standing, named_few, present_drops
from gristmill.layout import refuse_missing_root
from gristmill.printable import breakable, plain
from resources import Lake

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
    metadata: dict[str, Any] = {"drops out of order": len(found)}
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
