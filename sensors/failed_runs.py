"""What an alert says of failed runs: asset, partition, reason, and where to look."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import dagster as dg

from assets.ranges import PARTITION, RANGE
from gristmill.printable import cut, plain

MOST_NAMED: Final = 10
"""Runs of one message that are described; the others are counted by asset."""
_MOST_REASON: Final = 500
_MOST_NAME: Final = 200
_MOST_ASSETS: Final = 5
_MOST_LOGS: Final = 100

_SECRETS: Final = (
    # A password in an address; the values of a query, among them signatures; tokens.
    (re.compile(r"(?<=://)[^/\s@]+@"), "***@"),
    (re.compile(r"(?<=[?&])([\w.-]+)=[^&\s'\"]+"), r"\1=***"),
    (
        re.compile(
            r"(?i)\b([\w-]*(?:password|passwd|secret|token|api[_-]?key)[\w-]*\s*[=:]\s*)\S+"
        ),
        r"\1***",
    ),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"\bhf_\w{8,}"), "***"),
)
_SECRET_NAMES: Final = re.compile(r"(?i)passw|secret|token|credential|api_?key|access_?key|pgurl")
_SHORTEST_SECRET: Final = 6


@dataclass(frozen=True)
class FailedRun:
    """One failed run, for people.

    run: its id. assets: what it was to build, as `macroxue/pack`. partition: key, range of keys, or
    empty. reason: the first line of what the UI says. link: its page in the UI.
    """

    run: str
    assets: str
    partition: str
    reason: str
    link: str

    @property
    def line(self) -> str:
        """The run in one line of text."""
        what = f"{self.assets} {self.partition}".strip()
        return f"{what}: {self.reason} ({self.link})"


def message(
    instance: dg.DagsterInstance,
    run_ids: Sequence[str],
    ui: str,
    lost: int = 0,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """Returns the message about failed runs.

    instance: the Dagster instance that knows the runs.
    run_ids: ids of the runs, the oldest first; at least one.
    ui: address of the UI.
    lost: failed runs before these that could not be reported; default 0.
    environment: variables whose values the message must not show; default those of the process.

    `text` is for people; `failed` counts runs; `by_asset` counts them by what they were to build,
    or by their job where they have no selection; `runs` has the first MOST_NAMED of them.
    """
    found = _runs(instance, run_ids)
    named = [described(instance, run, ui, environment) for run in found[:MOST_NAMED]]
    by_asset = Counter(_assets(run) for run in found)
    count = len(run_ids)
    lines = [f"Gristmill: {count:,} run{'' if count == 1 else 's'} failed"]
    lines += [run.line for run in named]
    if count > len(named):
        more = ", ".join(f"{name} {many:,}" for name, many in by_asset.most_common(_MOST_ASSETS))
        lines.append(f"and {count - len(named):,} more; in all: {more}")
        lines.append(f"{ui.rstrip('/')}/runs?q[0]=status:FAILURE")
    if lost:
        lines.append(f"{lost:,} failed runs before these could not be reported")
    return {
        "text": "\n".join(lines),
        "failed": count,
        "not_reported": lost,
        "by_asset": dict(by_asset.most_common(50)),
        "runs": [asdict(run) for run in named],
    }


def described(
    instance: dg.DagsterInstance, run: dg.DagsterRun, ui: str, environment: Mapping[str, str]
) -> FailedRun:
    """Returns a failed run for people; `ui`, `environment`: as for `message`."""
    start, end = (run.tags.get(tag, "") for tag in RANGE)
    partition = run.tags.get(PARTITION) or (f"{start} to {end}" if start else "")
    return FailedRun(
        run.run_id,
        _assets(run, _planned(instance, run)),
        plain(partition, _MOST_NAME),
        without_secrets(_reason(instance, run), environment),
        f"{ui.rstrip('/')}/runs/{run.run_id}",
    )


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Returns a text without passwords, tokens, and the values of variables that hold them."""
    secrets = {value for name, value in environment.items() if _SECRET_NAMES.search(name)}
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return plain(text, _MOST_REASON)


def _runs(instance: dg.DagsterInstance, run_ids: Sequence[str]) -> list[dg.DagsterRun]:
    """The runs that the instance still has, in the order of the ids."""
    found: dict[str, dg.DagsterRun] = {}
    for start in range(0, len(run_ids), 500):
        some = instance.get_runs(dg.RunsFilter(run_ids=list(run_ids[start : start + 500])))
        found |= {run.run_id: run for run in some}
    return [found[run_id] for run_id in run_ids if run_id in found]


def _assets(run: dg.DagsterRun, planned: Sequence[dg.AssetKey] = ()) -> str:
    """What a run was to build: its selection, else what it planned, else the name of its job."""
    names = sorted({key.to_user_string() for key in run.asset_selection or planned})
    more = f" and {len(names) - _MOST_ASSETS} more" if len(names) > _MOST_ASSETS else ""
    return cut(", ".join(names[:_MOST_ASSETS]), _MOST_NAME) + more if names else run.job_name


def _planned(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[dg.AssetKey]:
    """The assets that a run without a selection, as one of a job, was to build."""
    if run.asset_selection:
        return []
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    events = [entry.dagster_event for entry in instance.all_logs(run.run_id, of_type=kind)]
    return [event.asset_key for event in events if event is not None and event.asset_key]


def _reason(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """The first line of why a run failed: of its first failed step, else of the run."""
    steps = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    for entry in list(steps)[:_MOST_LOGS]:
        event = entry.dagster_event
        if event is None or event.event_type is not dg.DagsterEventType.STEP_FAILURE:
            continue
        failure = event.step_failure_data
        if failure.user_failure_data is not None and failure.user_failure_data.description:
            return _first_line(failure.user_failure_data.description)
        if failure.error is not None:
            inner = failure.error.cause or failure.error
            return _first_line(inner.message)
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE):
        if entry.dagster_event is not None and entry.dagster_event.message:
            return _first_line(entry.dagster_event.message)
    return "no reason is in its log"


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
