"""What runs left behind: failures that a webhook hears of, and checks without a verdict.

The sensor `alerts` is not made with `run_failure_sensor`, which calls its function for each run and
continues where that fails: a backfill that fails would send hundreds of messages, and a dead
webhook lose them. No error has the address of the webhook, which is a secret.
Source: docs/deployment.md#alerts.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any, Final
from urllib import error, request

import dagster as dg

from assets.checking import evaluations
from assets.checking.rules import CHECKED
from assets.versions import PARTITION, RANGE
from gristmill.contract import BadInput, GristmillError
from gristmill.layout import refuse_missing_root
from gristmill.printable import cut, plain
from gristmill.settings.tables import ALERTS, AlertSettings
from resources import Lake

INTERVAL_SECONDS: Final = 30
SECONDS: Final = 15.0
"""For how long the webhook may say nothing."""
MOST_RUNS: Final = 1000
"""Failed runs that one message counts; the others come with the next tick."""
MOST_NAMED: Final = 10
"""Runs of one message that are described."""
_MOST_REASON: Final = 500
_MOST_NAME: Final = 200
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
_FAILED: Final = dg.DagsterEventType.RUN_FAILURE


class NotSent(GristmillError):
    """A message that the webhook did not take; the text says why."""


class _NoRedirects(request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is: what it names is not the webhook."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dg.sensor(
    name="alerts",
    minimum_interval_seconds=INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Says to the webhook of [alerts] in gristmill.toml which runs failed: one message a tick, "
        "however many runs. A message that is not taken is sent again by the next tick. It starts "
        "no run. What failed before it had a webhook is not reported."
    ),
)
def alerts(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SensorResult:
    """Posts the runs that failed since the last message that was taken."""
    table = lake.settings(ALERTS.name)
    if not table:
        return dg.SensorResult(skip_reason="no webhook in [alerts] of gristmill.toml", cursor="")
    try:
        chosen = AlertSettings(**table)
        address = chosen.address(os.environ)
    except ValueError as wrong:
        raise BadInput(table.file, f"{ALERTS.header} {wrong}") from None
    after = _after(context.cursor)
    is_first = after is None
    found = context.instance.fetch_run_status_changes(
        dg.RunStatusChangeRecordsFilter(_FAILED, after_storage_id=after),
        limit=1 if is_first else MOST_RUNS,
        ascending=not is_first,
    )
    failed = {record.storage_id: record.event_log_entry.run_id for record in found.records}
    if after is None:
        return _result("failures from now on are reported", max(failed, default=0))
    if not failed:
        return _result("no run failed", after)
    _post(address, message(context.instance, list(failed.values()), chosen.ui))
    return _result(f"reported {len(failed):,} failed runs", max(failed))


def _after(cursor: str | None) -> int | None:
    """Number of the event of the last failed run that was reported; None where none says it."""
    try:
        return int(json.loads(cursor or "")["after"])
    except (LookupError, OverflowError, TypeError, ValueError):
        return None


def _result(said: str, after: int) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=said, cursor=json.dumps({"after": after}))


def _post(address: str, body: Mapping[str, Any]) -> None:
    """Send a message. Only the status of the answer is read."""
    headers = {"Content-Type": "application/json", "User-Agent": "gristmill"}
    asked = request.Request(address, json.dumps(body).encode(), headers, method="POST")
    try:
        with request.build_opener(_NoRedirects).open(asked, timeout=SECONDS):
            return
    except error.HTTPError as answer:
        answer.close()
        moved = ": a redirect, which is not followed" if 300 <= answer.code < 400 else ""
        said = f"it answered {answer.code}{moved}"
    except (OSError, HTTPException, ValueError) as problem:
        # The text of some of these has the address.
        said = f"not reached: {type(getattr(problem, 'reason', problem)).__name__}"
    raise NotSent(f"the webhook: {said}; the next tick tries again")


def message(
    instance: dg.DagsterInstance,
    run_ids: Sequence[str],
    ui: str,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """Returns the message about failed runs.

    instance: the Dagster instance that knows the runs.
    run_ids: ids of the runs, the oldest first; at least one.
    ui: address of the UI.
    environment: variables whose values the message must not show; default those of the process.

    `text` is for people; `failed` counts runs; `runs` has the first MOST_NAMED of them.
    """
    ui = ui.rstrip("/")
    runs = [
        {
            "run": run.run_id,
            **_target(instance, run),
            "reason": without_secrets(_reason(instance, run.run_id), environment),
            "link": f"{ui}/runs/{run.run_id}",
        }
        for run in map(instance.get_run_by_id, run_ids[:MOST_NAMED])
        if run is not None
    ]
    count = len(run_ids)
    lines = [f"Gristmill: {count:,} run{'' if count == 1 else 's'} failed"]
    for run in runs:
        what = f"{run['assets']} {run['partition']}".strip()
        lines.append(f"{what}: {run['reason']} ({run['link']})")
    if count > len(runs):
        lines.append(f"and {count - len(runs):,} more: {ui}/runs?q[0]=status:FAILURE")
    return {"text": "\n".join(lines), "failed": count, "runs": runs}


def _target(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, str]:
    """What a run was to build: its assets, else the name of its job; key or range of keys."""
    planned = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    assets = run.asset_selection or instance.get_asset_keys_for_run(run.run_id, planned)
    names = ", ".join(sorted(key.to_user_string() for key in assets)) or run.job_name
    start, end = (run.tags.get(tag, "") for tag in RANGE)
    partition = run.tags.get(PARTITION) or (f"{start} to {end}" if start else "")
    return {"assets": cut(names, _MOST_NAME), "partition": plain(partition, _MOST_NAME)}


def _reason(instance: dg.DagsterInstance, run_id: str) -> str:
    """The first line of why a run failed."""
    said = next(filter(None, _reasons(instance, run_id)), "no reason is in its log")
    return said.strip().split("\n", 1)[0]


def _reasons(instance: dg.DagsterInstance, run_id: str) -> Iterator[str | None]:
    """What is said of why a run failed: of its failed steps, then of the run."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        if entry.dagster_event is not None:
            failure = entry.dagster_event.step_failure_data
            yield failure.user_failure_data and failure.user_failure_data.description
            if failure.error is not None:
                yield (failure.error.cause or failure.error).message
    for entry in instance.all_logs(run_id, of_type=_FAILED):
        yield entry.dagster_event and entry.dagster_event.message


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Returns a text without passwords, tokens, and the values of variables that hold them."""
    secrets = {value for name, value in environment.items() if _SECRET_NAMES.search(name)}
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return plain(text, _MOST_REASON)


CHECK_SECONDS = 30


@dg.sensor(
    name="check_states",
    minimum_interval_seconds=CHECK_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "A run that is killed or cancelled leaves the checks that it planned without a verdict. "
        "This sensor reports what stood, and takes back findings on partitions that were retired "
        "or removed. It also checks the pools after a pack was built. It starts no run."
    ),
)
def check_states(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SkipReason:
    """Reports the states of checks that show something else."""
    try:
        refuse_missing_root(lake.root)
    except GristmillError as error:  # its artifacts are not gone
        return dg.SkipReason(plain(str(error)))
    instance = context.instance
    before = _seen(context.cursor)
    rules = [rule for checked in CHECKED.values() for rule in checked.rules.values()]
    followed = {key for rule in rules for key in rule.follows}
    now = {}
    for record in instance.get_asset_records(sorted(followed)):
        event = record.asset_entry.last_materialization_storage_id
        if event is not None:
            now[_name(record.asset_entry.asset_key)] = event
    reported = set(evaluations.settle_ended(instance, lake))
    for checked in CHECKED.values():
        for rule in checked.rules.values():
            if any(now.get(name) != before.get(name) for name in map(_name, rule.follows)):
                reported |= set(evaluations.look_again(instance, lake, checked, rule))
    context.update_cursor(json.dumps(now))
    if not reported:
        return dg.SkipReason("every check shows what it last found")
    names = ", ".join(sorted(key.to_user_string() for key in reported))
    return dg.SkipReason(f"reported again: {names}")


def _seen(cursor: str | None) -> dict[str, object]:
    """What the tick before wrote; nothing for another text, as a person may type one in the UI."""
    try:
        found = json.loads(cursor or "{}")
    except (RecursionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _name(asset: dg.AssetKey) -> str:
    return asset.to_user_string()
