"""When checks speak: in their own step, or without a run where their last word is not true."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg

from assets.checking import rules
from assets.checking.dagster_private import newest_target
from assets.checking.found_again import adopt
from assets.checking.results import FALLING_SHORT, Known, State, found_by_run, state_of
from assets.checking.rules import CHECKED, Checked, Looked, Rule, Scope, keep, seen_by
from assets.checking.verdict_file import kept
from assets.checking.verdicts import Verdicts
from gristmill.run.progress import LogLines, reporter
from resources import Lake

Context = dg.AssetCheckExecutionContext | dg.AssetExecutionContext

PLANNED: Final = "PLANNED"
"""Status of a check that a run has planned and not evaluated."""


def evaluated(
    context: dg.AssetCheckExecutionContext,
    lake: Lake,
    checked: Checked,
    chosen: Sequence[Rule],
    keys: Collection[str] | None,
) -> Iterator[dg.AssetCheckResult]:
    """Look at the partitions of a run, and yield the state of each check."""
    instance = context.instance
    since, seen = start_of(context), dict[str, Looked | None]()

    def evaluate(verdicts: Verdicts) -> list[tuple[Rule, dg.AssetCheckResult, bool]]:
        """The result of each check, and whether it found something that blocks."""
        known = _prepare(instance, lake, checked, verdicts)
        scope = checked.scope(lake, keys, since, verdicts)
        if scope.whole:
            # Before it is looked at: what is published meanwhile is not taken for it.
            verdicts.register_all(checked.name, rules.places(scope))
            known = Known.of(verdicts, checked.name, known.keys)
        return [(rule, *_result(rule, checked, scope, known, seen, keys)) for rule in chosen]

    with kept(lake.root, context.log.warning) as file:
        revision = file.do(Verdicts.revision)
        progress = reporter(LogLines(context.log.info), f"checks of {checked.name}")
        with progress.current():
            results = file.do(evaluate)
        for _, result, _ in results:
            yield result
        latest = _latest(instance, map(checked.key, chosen))
        # Verdicts in memory do not see those of other runs.
        alone = (
            not file.is_lost
            and file.do(Verdicts.revision) == revision
            and all(record.run_id == context.run.run_id for record in latest.values())
        )
    lowered = any(
        rule.blocking and not result.passed and result.severity is not rule.severity
        for rule, result, _ in results
    )
    if any(blocks for _, _, blocks in results):
        # The assets downstream, and their checks, are skipped.
        settle_planned(instance, lake, context.run.run_id, checked)
    elif lowered or not alone:
        # Where other runs were at work, the last word has the findings of all.
        settle(instance, lake, [checked], context.run.run_id)


def _result(
    rule: Rule,
    checked: Checked,
    scope: Scope,
    known: Known,
    seen: dict[str, Looked | None],
    keys: Collection[str] | None,
) -> tuple[dg.AssetCheckResult, bool]:
    """What a check says in a run, and whether that blocks; `seen` has what was looked at before."""
    if rule.name not in seen:
        seen[rule.name] = seen_by(rule, scope)
    looked = seen[rule.name]
    keep(rule, checked, scope, looked)
    state = state_of(rule, checked.name, scope.verdicts, known)
    found = _found(rule, looked, checked.name, keys, scope.verdicts)
    severity = state.severity
    if rule.blocking and not found and not state.passed:
        # What was found in other partitions blocks nothing that this run built.
        severity = dg.AssetCheckSeverity.WARN
    result = dg.AssetCheckResult(
        check_name=rule.name,
        asset_key=checked.asset.key,
        passed=state.passed,
        severity=severity,
        description=state.description,
        metadata={**state.metadata, **found_by_run(looked, keys)},
    )
    return result, rule.blocking and bool(found)


def settle(
    instance: dg.DagsterInstance,
    lake: Lake,
    assets: Iterable[Checked],
    ending: str | None = None,
    said: Callable[[Verdicts], object] = lambda _: None,
) -> list[dg.AssetCheckKey]:
    """Report the states of checks whose latest evaluation says something else.

    ending: id of a run that will evaluate none of its checks any more; default none. Checks that
        a run under way has yet to evaluate are left alone.
    said: keeps verdicts that the caller has reached; default none.
    """
    assets = list(assets)
    wanted = {item.key(rule): (item, rule) for item in assets for rule in item.rules.values()}
    latest = _latest(instance, wanted)

    def states(verdicts: Verdicts) -> dict[dg.AssetCheckKey, State]:
        found: dict[dg.AssetCheckKey, State] = {}
        known: dict[str, Known] = {}
        for item in assets:
            keys = _prepare(instance, lake, item, verdicts).keys
            said(verdicts)
            known[item.name] = Known.of(verdicts, item.name, keys)
        for key, (checked, rule) in wanted.items():
            record = latest.get(key)
            evaluation = None if record is None else _evaluation(record)
            if (
                record is not None
                and evaluation is None
                and record.run_id != ending
                and _is_under_way(instance, record.run_id)
            ):
                continue
            state = state_of(rule, checked.name, verdicts, known[checked.name])
            if record is None and not state.metadata[FALLING_SHORT]:
                continue  # never executed, and nothing to say
            if not state.is_shown_by(evaluation):
                found[key] = state
        return found

    with kept(lake.root) as file:
        changed = file.do(states)
    for key, state in changed.items():
        checked, rule = wanted[key]
        target = newest_target(instance, checked.asset.key)
        instance.report_runless_asset_event(state.evaluation(key, rule.blocking, target))
    return list(changed)


def settle_planned(
    instance: dg.DagsterInstance,
    lake: Lake,
    run_id: str,
    besides: Checked | None = None,
    said: Callable[[Verdicts], object] = lambda _: None,
) -> list[dg.AssetCheckKey]:
    """Report the states of the checks that a run planned, and will not evaluate any more.

    besides: an asset whose checks to settle in any case; default none.
    """
    owners = {item.key(rule): item for item in CHECKED.values() for rule in item.rules.values()}
    latest = _latest(instance, owners)
    assets = {} if besides is None else {besides.asset.key: besides}
    for key, record in latest.items():
        if record.status.value == PLANNED and record.run_id == run_id:
            assets[key.asset_key] = owners[key]
    return settle(instance, lake, assets.values(), run_id, said)


def settle_ended(instance: dg.DagsterInstance, lake: Lake) -> list[dg.AssetCheckKey]:
    """Report the states of checks whose run ended without evaluating them, as after a kill.

    Findings on partitions that were retired or removed since are taken back, too. Returns the
    checks that were reported.
    """
    owners = {item.key(rule): item for item in CHECKED.values() for rule in item.rules.values()}
    assets = {}
    for key, record in _latest(instance, owners).items():
        shown = _evaluation(record)
        if not _is_under_way(instance, record.run_id) if shown is None else not shown.passed:
            assets[key.asset_key] = owners[key]
    return settle(instance, lake, assets.values())


def look_again(
    instance: dg.DagsterInstance, lake: Lake, checked: Checked, rule: Rule
) -> list[dg.AssetCheckKey]:
    """Execute a check over everything without a run, and report its state if that has changed."""

    def look(verdicts: Verdicts) -> None:
        scope = checked.scope(lake, None, None, verdicts)
        verdicts.register_all(checked.name, rules.places(scope))
        keep(rule, checked, scope, seen_by(rule, scope))

    return settle(instance, lake, [checked], said=look)


def _prepare(
    instance: dg.DagsterInstance, lake: Lake, checked: Checked, verdicts: Verdicts
) -> Known:
    """Forget verdicts on what changed since; without any, take what disk and events say."""
    if verdicts.knows(checked.name):
        verdicts.refresh(checked.name, checked.of_bytes)
    else:
        adopt(instance, lake, checked, verdicts)
    return Known.of(verdicts, checked.name, checked.partitions(instance))


def _found(
    rule: Rule,
    looked: Looked | None,
    asset: str,
    keys: Collection[str] | None,
    verdicts: Verdicts,
) -> int:
    """How many findings are on the partitions of the run."""
    if looked is not None:
        return len(looked.findings)
    short = [one.subject for one in verdicts.of(asset, rule.name)]
    return len(short) if keys is None else len(set(short) & set(keys))


def start_of(context: Context) -> datetime | None:
    """When the run started; None if the instance does not know, so that everything is read."""
    records = context.instance.get_run_records(dg.RunsFilter(run_ids=[context.run.run_id]), limit=1)
    start = records[0].start_time if records else None
    return None if start is None else datetime.fromtimestamp(start, UTC)


def _latest(instance: dg.DagsterInstance, keys: Iterable[dg.AssetCheckKey]) -> Mapping[Any, Any]:
    """The records of the latest executions of checks, of planned ones too."""
    return instance.event_log_storage.get_latest_asset_check_execution_by_key(list(keys))


def _is_under_way(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is not None and not run.is_finished


def _evaluation(record: Any) -> dg.AssetCheckEvaluation | None:
    """What the record of a check's execution says; None of one that is planned."""
    evaluation: dg.AssetCheckEvaluation | None = record.evaluation
    return None if record.status.value == PLANNED else evaluation
