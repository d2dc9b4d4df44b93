"""Reasoning corpora in Dagster: normalised records, token shards, alignment, daily reports."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import dagster as dg

from assets.checking.rules import Looked, Rule, Scope, command
from assets.family import Definitions, checks_of, family_of
from gristmill import markdown
from gristmill.contract import Violation
from gristmill.corpora.corpus import PARTITIONS
from gristmill.corpora.raw.chat.messages import available as chats
from gristmill.corpora.raw.chat.messages import keys_of as chat_keys_of
from gristmill.corpora.raw.drops import AUDITS
from gristmill.data_root import DataRoot
from gristmill.leaks.texts import built_sets, set_names
from gristmill.reasoning.builds import today
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import (
    ALIGNMENT,
    NORMALIZED,
    RAW_MANIFEST,
    SHARDS,
    published_partitions,
)
from gristmill.reasoning.format.reports import all_splits
from gristmill.reasoning.raw import INBOX, available, keys_of, may_have_steps, wanted
from resources import Lake

Report = Mapping[str, Any]
_MOST_NAMED: Final = 8
"""Partitions of an asset that a cure names, at most."""
_OF_RAW: Final = ("normalised file", "raw manifest")
_OF_NORMALIZED: Final = re.compile(rf"{names.NORMALIZED}/(\w+)/(\w+)(?:/\d+)?\.jsonl$")
_OF_SHARDS: Final = re.compile(r"(\w+)/(\w+)/shard_\d")

_DESCRIPTIONS: Final = {
    "drift": "The report is within the tolerances of its baseline. If this check fails, staging "
    'and readers with verify="hash" refuse the shards until a person accepts the change: see '
    "its cure.",
    "invariance": "Changes of a raw record that normalisation claims to absorb (white space at the "
    "edges, a byte order mark, CRLF) change less than 1 % of the token ids. If this check fails, "
    'staging and readers with verify="hash" refuse the shards until a newer report passes.',
    "coverage": "Every split that has token shards is aligned, and has steps in some examples, but "
    "for plain text. This check only warns.",
}


_CURES: Final = {
    "drift": "look at the report: if the change is meant, set `[reasoning.qc_report] baseline` to "
    "its day and run `gristmill materialize reasoning/qc_report`; if `baseline` names that day "
    "already, first remove it and run the same command",
    "invariance": "a newer report must pass: mend the normalisation, build the shards again, then "
    "the report of the day",
    "coverage": "look at the drop: its records have no steps, or no annotations came with it",
}


def reasoning_checks(built: Definitions) -> list[dg.AssetChecksDefinition]:
    """Returns the checks of the reasoning family; built: its definitions by key."""
    return [shard_checks(built["reasoning/manifest"]), quality_checks(built["reasoning/qc_report"])]


def shard_checks(manifest: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    """Returns the check `checksums`: what staging verifies, over all published shards."""
    rule = Rule(
        "checksums",
        "Every shard has the hash of its tensor and of its file that meta file and manifest "
        "state, no file is without an entry and no entry without a file, and normalised files "
        "have the hashes of the raw manifest.",
        _checksums,
        _rebuilding,
    )
    return checks_of(manifest, names.TOKENIZED, [rule], "checksums")


def quality_checks(report: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    """Returns the checks of the daily report; `drift` and `invariance` block, `coverage` warns."""
    rules = [
        Rule(
            name,
            description,
            _of_reports(_FOUND[name]),
            lambda *_, name=name: _CURES[name],
            dg.AssetCheckSeverity.WARN if name == "coverage" else dg.AssetCheckSeverity.ERROR,
            blocking=name != "coverage",
            newest_only=True,
        )
        for name, description in _DESCRIPTIONS.items()
    ]
    return checks_of(report, names.REPORTS, rules, "reasoning_quality")


def _rebuilding(asset: str, _: str, found: Sequence[Violation]) -> str:
    """The commands that build again what differs, also where sizes and times are as recorded."""
    damaged = sorted({item for violation in found if (item := _partition_of(violation))})
    commands = []
    for each in (NORMALIZED, SHARDS):
        keys = [key for owner, key in damaged if owner == each][:_MOST_NAMED]
        if keys:
            commands.append(command(each, " --partition ".join(keys)))
    if any(violation.law in _OF_RAW for violation in found):
        commands.append(command(RAW_MANIFEST, ""))
    return "run " + ", then ".join(
        f"`{each} --rebuild`" for each in [*commands, command(asset, "")]
    )


def _partition_of(violation: Violation) -> tuple[str, str] | None:
    """The asset and the partition of a file; None for one that is of all partitions."""
    if violation.law == "normalised file":
        owner, found = NORMALIZED, _OF_NORMALIZED.search(violation.where)
    else:  # where the manifest differs from a meta file, either may be damaged
        owner = SHARDS
        found = _OF_SHARDS.search(f"{violation.where} {violation.found}")
    return None if found is None else (owner, f"{found[1]}__{found[2]}")


def _checksums(scope: Scope) -> Looked:
    from gristmill.reasoning.read.shard_files import verify_shards

    found = verify_shards(scope.lake.root / names.TOKENIZED)
    # The record names the manifest as one of the records of its folder.
    versions = {item.subject: item.data_version for item in scope.standing} or {"": ""}
    subject = next(iter(versions))
    return Looked(versions, [(subject, violation) for violation in found])


def _of_reports(find: Callable[[Report, DataRoot], Iterator[str]]) -> Callable[[Scope], Looked]:
    """Returns what looks at the reports of the run's days; executed alone, at the newest one."""

    def look(scope: Scope) -> Looked:
        folder = scope.lake.root / names.REPORTS
        paths = sorted(folder.glob("*.json"))[-1:]
        if scope.keys is not None:
            paths = [folder / f"{day}.json" for day in scope.keys]
        reports = {path.stem: json.loads(path.read_bytes()) for path in paths if path.is_file()}
        return Looked(
            dict.fromkeys(reports, ""),
            [
                (day, Violation("report", day, reason))
                for day, content in reports.items()
                for reason in find(content, scope.lake)
            ],
        )

    return look


def _drift(report: Report, lake: DataRoot) -> Iterator[str]:
    others = set(_invariance(report, lake))
    for breach in report["gate"]["breaches"]:
        if str(breach) not in others:
            yield str(breach)


def _invariance(report: Report, _: DataRoot) -> Iterator[str]:
    yield from (str(breach) for breach in report.get("invariance", {}).get("breaches", ()))


def _coverage(report: Report, lake: DataRoot) -> Iterator[str]:
    for name, split in all_splits(report).items():
        is_bare = split["examples"] and split.get("aligned") == 0  # a dataset may have none
        if is_bare and may_have_steps(lake, name.rpartition("/")[2]):
            yield f"{name}: no example has steps"


_FOUND: Final[Mapping[str, Callable[[Report, DataRoot], Iterator[str]]]] = {
    "drift": _drift,
    "invariance": _invariance,
    "coverage": _coverage,
}


COUNT: Final = 5
"""Examples of each corpus; `gristmill audit` draws as many."""


reasoning_report = dg.define_asset_job(
    "reasoning_report",
    selection=[dg.AssetKey(["reasoning", "qc_report"])],
    description="The report of the current day, with drift, invariance and coverage.",
)


@dg.schedule(
    name="reasoning_daily_report",
    job=reasoning_report,
    cron_schedule="0 5 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every day at 05:00 UTC: the report of that day. Off by default.",
)
def reasoning_daily_report() -> dg.RunRequest:
    """Returns the run of the current day's report."""
    day = today().isoformat()
    return dg.RunRequest(run_key=day, partition_key=day)


@dg.op(
    description="Draws examples of every aligned split for an audit, the least sure ones first, "
    "and reports their ids on the page of `reasoning/alignment`."
)
def draw_audit_sample(context: dg.OpExecutionContext, lake: Lake) -> None:
    """Report the audit sample of every aligned split as an observation."""
    for observation in observations(lake):
        context.log_event(observation)


@dg.job(
    name="reasoning_audit_sample",
    description="The examples whose steps a person looks at this week: see `gristmill audit`.",
)
def reasoning_audit_sample() -> None:
    """Draw the audit sample."""
    draw_audit_sample()


reasoning_weekly_audits = dg.ScheduleDefinition(
    name="reasoning_weekly_audits",
    job=reasoning_audit_sample,
    cron_schedule="0 6 * * 1",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every Monday at 06:00 UTC: draws the audit sample. Off by default.",
)

JOBS = [reasoning_report, reasoning_audit_sample]
SCHEDULES = [reasoning_daily_report, reasoning_weekly_audits]


def observations(lake: Lake) -> Iterator[dg.AssetObservation]:
    """Yield this week's sample of each corpus that has examples without an audit.

    Raises BadInput where an alignment is not that of its index.
    """
    from gristmill.reasoning.read.alignment import draw, week_of

    week = week_of(today())
    folders = (lake.root / names.TOKENIZED, lake.root / names.ALIGNMENT, lake.inbox(INBOX) / AUDITS)
    aligned = published_partitions(lake, names.ALIGNMENT)
    for corpus in dict.fromkeys(key.split("__")[0] for key in aligned):
        drawn = draw(*folders, corpus, week, COUNT)
        if not drawn:
            continue
        rows = (each.row for each in drawn)
        lines = (f"{row.example_id}, {row.confidence:g}: {row.notes}" for row in rows)
        yield dg.AssetObservation(
            asset_key=dg.AssetKey.from_user_string(ALIGNMENT),
            description=f"audit sample of {corpus}, {week}: "
            f"run `gristmill audit --corpus {corpus} --week {week}`",
            metadata={
                "week": week,
                "examples": len(drawn),
                "least confidence": drawn[0].row.confidence,
                "sample": dg.MetadataValue.md(markdown.bullets(lines)),
            },
        )


reasoning_days = dg.DailyPartitionsDefinition(start_date="2026-01-01", timezone="UTC", end_offset=1)
"""Days in UTC, the current one included: a report describes what is published now."""


def _available(lake: DataRoot) -> set[str]:
    """Splits, conversations, datasets, evaluation sets; the report's day where there is a split."""
    splits = available(lake)
    days = [today().isoformat()] if splits else []
    return splits.union(chats(lake), wanted(lake), set_names(lake.root), days)


FAMILY = family_of(
    "reasoning",
    {"reasoning_days": reasoning_days},
    inboxes=lambda _: {
        "reasoning": {"keys_of": keys_of, "built_in": lambda: {"reasoning_splits": PARTITIONS}},
        "chat": {"keys_of": chat_keys_of},
        # Not every key is that of a drop: splits that are built are evaluation sets, too.
        "evals": {"keys_of": lambda drop: [drop.name], "made": built_sets},
    },
    checks=reasoning_checks,
    jobs=JOBS,
    schedules=SCHEDULES,
    available=_available,
)
