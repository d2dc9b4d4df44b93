"""What checks show: evaluated in their own step, or without a run where their states changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg

from assets.checking import rules
from assets.checking.rules import Checked, Looked, Rule, Scope, keep, owners_of_checks, seen_by
from assets.checking.verdicts import Verdict, Verdicts, kept
from assets.events import Problem
from assets.versions import latest, newest_event, newest_version, observed_since
from gristmill import markdown
from gristmill.data_root.states import BUILT
from gristmill.printable import breakable, plain
from gristmill.run.progress import LogLines, reporter
from resources import Lake

TABLE: Final = "findings"
"""Name of the table of partitions that fall short, in the metadata of an evaluation."""
PROBLEMS: Final = "problems"
THIS_RUN: Final = "this run"
"""Name of the row that says what the run of an evaluation looked at and found."""
WHOLE_ASSET: Final = "(the asset)"
"""What the table says in place of a partition, for an asset without any."""

_COLUMNS: Final = ("partition", "problem", "cure")
# Rows and characters of a table: an event is stored for ever and has at most 100,000 bytes.
_MOST_ROWS, _MOST_CHARACTERS = 200, 40_000
# A path of an ordinary drop stays whole in the line above the table: it can be copied there.
_LONGEST_WORD: Final = 80


@dataclass(frozen=True)
class State:
    """What a check says of all partitions of its asset.

    passed: whether no partition falls short, and every one was checked.
    severity: of the findings; a warning where the only fault is that nobody has looked.
    description: one line for a person, as Markdown.
    metadata: counts, and the table of the partitions that fall short.
    """

    passed: bool
    severity: dg.AssetCheckSeverity
    description: str
    metadata: Mapping[str, Any]

    def is_shown_by(self, evaluation: dg.AssetCheckEvaluation | None) -> bool:
        """Whether an evaluation says the same."""
        if evaluation is None:
            return False
        shown = (evaluation.passed, evaluation.severity if not self.passed else self.severity)
        return shown == (self.passed, self.severity) and all(
            evaluation.metadata.get(name) == value for name, value in self._stored().items()
        )

    def evaluation(
        self, key: dg.AssetCheckKey, blocking: bool, target: Any = None
    ) -> dg.AssetCheckEvaluation:
        """Returns the state as an evaluation that belongs to no run."""
        return dg.AssetCheckEvaluation(
            asset_key=key.asset_key,
            check_name=key.name,
            passed=self.passed,
            severity=self.severity,
            description=self.description,
            metadata=dict(self.metadata),
            blocking=blocking,
            target_materialization_data=target,
        )

    def _stored(self) -> Mapping[str, Any]:
        return {
            name: dg.MetadataValue.int(value) if isinstance(value, int) else value
            for name, value in self.metadata.items()
        }


@dataclass(frozen=True)
class Known:
    """The partitions that an asset has."""

    keys: Collection[str] | None
    published: Collection[str]

    @classmethod
    def of(cls, verdicts: Verdicts, asset: str, keys: Collection[str] | None) -> Known:
        """The partitions by the kept verdicts; arguments as of the fields."""
        known = cls(keys, ())
        return cls(keys, {key for key in verdicts.subjects(asset) if known.has(key)})

    def has(self, subject: str) -> bool:
        """Whether a verdict is about a partition that there is, or about files of none."""
        return self.keys is None or subject in self.keys or "/" in subject


def state_of(rule: Rule, asset: str, verdicts: Verdicts, known: Known) -> State:
    """Returns what a check says by the kept verdicts."""
    left: list[str] = []
    if rule.newest_only:
        kept = [one for one in verdicts.of(asset, rule.name) if known.has(one.subject)][-1:]
        short = [one for one in kept if one.problem is not None]
        count = len(kept)
    else:
        short = [one for one in verdicts.problems(asset, rule.name) if known.has(one.subject)]
        others = filter(known.has, verdicts.unpublished(asset, rule.name))
        count = len(known.published) + len(set(others) - set(known.published))
        if rule.name != BUILT:
            left = list(filter(known.has, verdicts.missing(asset, rule.name)))
    metadata: dict[str, Any] = {
        PROBLEMS: len(short),
        "partitions": count,
        **({"not checked": len(left)} if left else {}),
        **({TABLE: _table(short)} if short else {}),
    }
    if rule.newest_only and kept and not short:
        text = f"{kept[0].subject} is the newest: nothing found"
    else:
        text = _description(rule, short, count, known.keys is not None)
    if left:
        some = f"{len(left):,} of {count:,}"
        text += f"; {some} not checked since they were built: execute this check to look at them"
    described = breakable(markdown.escape(text), _LONGEST_WORD)
    # Green means checked: what nobody has looked at is a warning.
    severity = rule.severity if short else dg.AssetCheckSeverity.WARN
    return State(not short and not left, severity, described, metadata)


def found_by_run(looked: Looked | None, keys: Collection[str] | None) -> dict[str, Any]:
    """Returns the metadata of what one run looked at and found."""
    said = "everything published" if keys is None else f"partitions of it: {_first_keys(keys)}"
    violations = [violation for _, violation in looked.findings] if looked else []
    if looked is not None:
        found = f"findings: {len(violations):,}" if violations else "nothing found"
        said += f"; {len(looked.looked_at):,} looked at, {found}"
    listed = markdown.bullets(markdown.code(str(violation)) for violation in violations)
    return {THIS_RUN: said, **({"listed": dg.MetadataValue.md(listed)} if listed else {})}


def _table(short: Sequence[Verdict]) -> dg.TableMetadataValue:
    records, size = [], 0
    for one in short[:_MOST_ROWS]:
        subject, problem = one.subject or WHOLE_ASSET, one.problem or ""
        size += len(subject) + len(problem) + len(one.cure)
        if size > _MOST_CHARACTERS:
            break
        # Partitions and cures stay whole: a person copies the key and the command.
        row = (subject, breakable(problem), one.cure)
        records.append(dg.TableRecord(dict(zip(_COLUMNS, row, strict=True))))
    return dg.TableMetadataValue(
        records, dg.TableSchema([dg.TableColumn(name) for name in _COLUMNS])
    )


def _description(rule: Rule, short: Sequence[Verdict], count: int, partitioned: bool) -> str:
    if not short:
        said = "the last build of each succeeded" if rule.name == BUILT else "nothing found"
        if not count:
            return "nothing is published"
        if not partitioned:
            return "the last build succeeded" if rule.name == BUILT else said
        return f"{count:,} partition{'' if count == 1 else 's'}: {said}"
    first = f"{short[0].problem}"
    if not partitioned:
        return first
    return (
        f"{len(short):,} of {count:,} partition{'' if count == 1 else 's'} "
        f"({_first_keys([one.subject for one in short])}): {first}"
    )


def _first_keys(keys: Collection[str]) -> str:
    first = list(keys)[:3]
    return ", ".join(first) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")


_MOST_LINES: Final = 3


def adopt(instance: dg.DagsterInstance, lake: Lake, checked: Checked, verdicts: Verdicts) -> None:
    """Take what stands on disk, and from events what was reported and which builds failed."""
    keys, asset = checked.partitions(instance), checked.asset.key
    if keys is None:
        found = newest_version(instance, asset)
        newest = {"": found} if found else {}
    else:
        newest = latest(instance, asset, list(keys))
    reported = {key: (version, "") for key, (version, _) in newest.items()}
    verdicts.reported(checked.name, reported)
    if BUILT in checked.rules:
        verdicts.only(checked.name, BUILT, failed_builds(instance, checked, lake))
    # At last: what a killed process has begun is begun again.
    verdicts.register_all(checked.name, rules.places(checked.scope(lake, None, None, verdicts)))


def failed_builds(instance: dg.DagsterInstance, checked: Checked, lake: Lake) -> list[Verdict]:
    """Returns the verdict on each partition whose last build failed, by the events of builds."""
    keys = checked.partitions(instance)
    failed = []
    found = observed_since(instance, checked.asset.key, None if keys is None else list(keys))
    for key, event in found.items():
        said = {name: value.value for name, value in event.metadata.items()}
        if said.get("status") == "failed":
            problem = Problem(str(said.get("reason")), "", str(said.get("cure", "")))
            failed.append(failed_build(checked.name, key or "", problem, lake))
    return failed


def failed_build(asset: str, subject: str, problem: Problem, lake: Lake) -> Verdict:
    """Returns the verdict on a partition whose build failed."""
    below = problem.below(lake.root)
    lines = [line for line in below.reason.splitlines() if line.strip()][:_MOST_LINES]
    command = rules.command(asset, subject)
    cure = below.cure or f"mend what the problem names, then build again: {command}"
    return Verdict(subject, "", plain("\n".join(lines), rules.LONGEST_PROBLEM), cure)


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
    instance, chosen = context.instance, [rule.of(lake) for rule in chosen]
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
    """
    assets = list(assets)
    wanted = {
        item.key(rule): (item, rule.of(lake)) for item in assets for rule in item.rules.values()
    }
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
            if record is None and not state.metadata[PROBLEMS]:
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
    """Report the states of the checks that a run planned, and will not evaluate any more."""
    owners = owners_of_checks()
    latest = _latest(instance, owners)
    assets = {} if besides is None else {besides.asset.key: besides}
    for key, record in latest.items():
        if record.status.value == PLANNED and record.run_id == run_id:
            assets[key.asset_key] = owners[key]
    return settle(instance, lake, assets.values(), run_id, said)


def settle_ended(instance: dg.DagsterInstance, lake: Lake) -> list[dg.AssetCheckKey]:
    """Report the states of checks whose run ended without evaluating them, as after a kill."""
    owners = owners_of_checks()
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


try:
    from dagster._core.definitions.asset_checks.asset_check_evaluation import (
        AssetCheckEvaluationTargetMaterializationData,
    )

    HAS_TARGET = True
    """Whether the evaluation of a check can name the materialization that it is about."""
except ImportError:
    HAS_TARGET = False

Target = Any
"""The materialization that an evaluation of a check is about."""


def newest_target(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Target | None:
    """Returns the newest materialization of an asset as the target of an evaluation.

    None without a materialization, and where HAS_TARGET is False: Dagster then compares the time of
    the evaluation with that of the newest materialization.
    """
    newest = newest_event(instance, asset) if HAS_TARGET else None
    return newest and AssetCheckEvaluationTargetMaterializationData(
        storage_id=newest.storage_id, run_id=newest.run_id, timestamp=newest.timestamp
    )
