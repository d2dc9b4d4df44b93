"""When checks speak: in their own step, or without a run where their last word is not true.

See also `assets/checks.py`: the definitions; `outcomes.py`: what the step of an asset says about
its builds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg

from assets.checking import rules
from assets.checking.checked import CHECKED, Checked
from assets.checking.results import FOUND_BY_RUN, Known, findings_in, found_by_run, state_of
from assets.checking.rules import Looked, Rule, Scope
from assets.checking.verdicts import BUILT, Verdict, Verdicts, opened
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
    """Look at the partitions of a run, and yield the state of each check.

    context: of the step.
    lake: the data root.
    checked: the asset.
    chosen: its checks to execute.
    keys: the partitions of the run; None for everything.
    """
    instance = context.instance
    with opened(lake.root) as verdicts:
        known = _prepare(instance, lake, checked, verdicts)
        scope = checked.scope(lake, keys, start_of(context), verdicts)
        revision, blocked, lowered = verdicts.revision(), False, False
        for rule in chosen:
            looked = look(rule, checked, scope)
            if scope.whole:
                known = Known.of(verdicts, checked.name, known.keys)
            state = state_of(rule, checked.name, verdicts, known)
            found = _found(rule, looked, checked.name, keys, verdicts)
            severity = rule.severity
            if rule.blocking and found:
                blocked = True
            elif rule.blocking and not state.passed:
                # What was found in other partitions blocks nothing that this run built.
                severity, lowered = dg.AssetCheckSeverity.WARN, True
            yield dg.AssetCheckResult(
                check_name=rule.name,
                asset_key=checked.asset.key,
                passed=state.passed,
                severity=severity,
                description=state.description,
                metadata={
                    **state.metadata,
                    **found_by_run(looked, keys),
                    FOUND_BY_RUN: found,
                },
            )
        latest = _latest(instance, map(checked.key, chosen))
        alone = verdicts.revision() == revision and all(
            record.run_id == context.run.run_id for record in latest.values()
        )
    if blocked:
        # The assets downstream, and their checks, are skipped.
        settle_planned(instance, lake, context.run.run_id, checked)
    elif lowered or not alone:
        # Where other runs were at work, the last word has the findings of all.
        settle(instance, lake, [checked], context.run.run_id)


def settle(
    instance: dg.DagsterInstance,
    lake: Lake,
    assets: Iterable[Checked],
    ending: str | None = None,
) -> list[dg.AssetCheckKey]:
    """Report the states of checks whose latest evaluation says something else.

    instance: the Dagster instance.
    lake: the data root.
    assets: whose checks.
    ending: id of a run that will evaluate none of its checks any more; default none. Checks that
        a run under way has yet to evaluate are left alone.

    Returns the checks that were reported.
    """
    wanted = {item.key(rule): (item, rule) for item in assets for rule in item.rules.values()}
    latest = _latest(instance, wanted)
    reported = []
    with opened(lake.root) as verdicts:
        known: dict[str, Known] = {}
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
            if checked.name not in known:
                known[checked.name] = _prepare(instance, lake, checked, verdicts)
            state = state_of(rule, checked.name, verdicts, known[checked.name])
            if record is None and state.passed:
                continue  # never executed, and nothing to say
            if state.is_shown_by(evaluation):
                continue
            target = _latest_materialization(instance, checked.asset.key)
            instance.report_runless_asset_event(state.evaluation(key, rule.blocking, target))
            reported.append(key)
    return reported


def settle_planned(
    instance: dg.DagsterInstance, lake: Lake, run_id: str, besides: Checked | None = None
) -> list[dg.AssetCheckKey]:
    """Report the states of the checks that a run planned, and will not evaluate any more.

    instance: the Dagster instance.
    lake: the data root.
    run_id: of the run.
    besides: an asset whose checks to settle in any case; default none.

    Returns the checks that were reported.
    """
    owners = {item.key(rule): item for item in CHECKED.values() for rule in item.rules.values()}
    latest = _latest(instance, owners)
    assets = {} if besides is None else {besides.asset.key: besides}
    for key, record in latest.items():
        if record.status.value == PLANNED and record.run_id == run_id:
            assets[key.asset_key] = owners[key]
    return settle(instance, lake, assets.values(), run_id)


def settle_ended(instance: dg.DagsterInstance, lake: Lake) -> list[dg.AssetCheckKey]:
    """Report the states of checks whose run ended without evaluating them, as after a kill.

    Findings on partitions that were retired or removed since are taken back, too.

    instance: the Dagster instance.
    lake: the data root.

    Returns the checks that were reported.
    """
    owners = {item.key(rule): item for item in CHECKED.values() for rule in item.rules.values()}
    assets = {}
    for key, record in _latest(instance, owners).items():
        shown = _evaluation(record)
        if not _is_under_way(instance, record.run_id) if shown is None else not shown.passed:
            assets[key.asset_key] = owners[key]
    return settle(instance, lake, assets.values())


def _prepare(
    instance: dg.DagsterInstance, lake: Lake, checked: Checked, verdicts: Verdicts
) -> Known:
    """Forget verdicts on what changed since; without any, take those that the UI shows."""
    if verdicts.knows(checked.name):
        verdicts.refresh(checked.name, checked.of_bytes)
    else:
        _adopt(instance, lake, checked, verdicts)
    return Known.of(verdicts, checked.name, checked.partitions(instance))


def _adopt(instance: dg.DagsterInstance, lake: Lake, checked: Checked, verdicts: Verdicts) -> None:
    """Take what stands on disk, and the findings that the UI shows."""
    places = rules.places(checked.scope(lake, None, None, verdicts))
    verdicts.register_all(checked.name, places)
    for rule in checked.rules.values():
        kept = {one.subject for one in verdicts.of(checked.name, rule.name)}
        shown = findings_in(_last_evaluation(instance, checked.key(rule)))
        verdicts.keep(
            checked.name,
            rule.name,
            [
                Verdict(subject, places[subject].data_version if subject in places else "", *found)
                for subject, found in shown.items()
                if subject not in kept and (subject in places or rule.name == BUILT)
            ],
        )


def look(rule: Rule, checked: Checked, scope: Scope) -> Looked | None:
    """Look at some partitions, and keep what is found.

    rule: the check.
    checked: its asset.
    scope: the partitions.

    Returns None if the check looks at nothing.
    """
    if rule.look is None:
        return None
    looked = rule.look(scope)
    reached = list(looked.verdicts(lambda subject, found: rule.cure(checked.name, subject, found)))
    if scope.whole and not rule.newest_only:
        scope.verdicts.register_all(checked.name, rules.places(scope))
        scope.verdicts.replace(checked.name, rule.name, reached)
    else:
        scope.verdicts.keep(checked.name, rule.name, reached)
    return looked


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


def _last_evaluation(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey
) -> dg.AssetCheckEvaluation | None:
    """The last evaluation of a check that was not only planned."""
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
    return next(filter(None, map(_evaluation, history)), None)


def _evaluation(record: Any) -> dg.AssetCheckEvaluation | None:
    """What the record of a check's execution says; None of one that is planned."""
    evaluation: dg.AssetCheckEvaluation | None = record.evaluation
    return None if record.status.value == PLANNED else evaluation


def _latest_materialization(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Any:
    """What an evaluation is about; without it, Dagster compares times."""
    with suppress(ImportError, AttributeError):
        from dagster._core.definitions.asset_checks.asset_check_evaluation import (
            AssetCheckEvaluationTargetMaterializationData,
        )

        records = instance.fetch_materializations(asset, limit=1).records
        if records:
            return AssetCheckEvaluationTargetMaterializationData(
                run_id=records[0].run_id,
                storage_id=records[0].storage_id,
                timestamp=records[0].timestamp,
            )
    return None
