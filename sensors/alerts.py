"""The sensor `alerts`: says to a webhook which runs failed, all of a tick in one message.

It exists where the data root's `gristmill.toml` has a table `[alerts]`. It is not made with
`run_failure_sensor`, which calls its function for each run and five runs a tick: a backfill that
fails would send hundreds of messages. No error has the address of the webhook, which is a secret.
Source: docs/deployment.md#alerts.
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from http.client import HTTPException
from typing import Any, Final
from urllib import error, request

import dagster as dg

from gristmill.contract import BadInput, GristmillError
from gristmill.settings.root_tables import ALERTS, AlertSettings
from gristmill.settings.tables import FILE
from gristmill.untrusted.toml import read_toml
from resources import Lake
from sensors.failed_runs import message

SECONDS: Final = 15.0
"""For how long one message may take, the look-up of the host's name included."""


class NotSent(GristmillError):
    """A message that the webhook did not take; the text says why."""


class _NoRedirects(request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is: what it names is not the webhook."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def post(address: str, body: Mapping[str, Any], seconds: float = SECONDS) -> None:
    """Send a message. Only the status of the answer is read."""
    refusals: list[str | None] = []
    # A socket's limit holds for each read: an answer of a byte at a time keeps to it.
    thread = threading.Thread(
        target=lambda: refusals.append(_refusal(address, body, seconds)), daemon=True
    )
    thread.start()
    thread.join(seconds)
    refusal = refusals[0] if refusals else f"no answer in {seconds:g} s"
    if refusal is not None:
        raise NotSent(f"the webhook: {refusal}")


def _refusal(address: str, body: Mapping[str, Any], seconds: float) -> str | None:
    """Send a message, and say why it was not taken; None if it was."""
    asked = request.Request(
        address,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "gristmill"},
        method="POST",
    )
    try:
        with request.build_opener(_NoRedirects).open(asked, timeout=seconds):
            return None
    except error.HTTPError as answer:
        answer.close()
        moved = ": a redirect, which is not followed" if 300 <= answer.code < 400 else ""
        return f"it answered {answer.code}{moved}"
    except error.URLError as problem:
        reason = problem.reason
        said = reason.strerror if isinstance(reason, OSError) else None
        return f"not reached: {said or type(reason).__name__}"
    except (OSError, HTTPException, ValueError) as problem:
        # The text of some of these has the address.
        return f"not reached: {type(problem).__name__}"


INTERVAL_SECONDS: Final = 30
MOST_RUNS: Final = 1000
"""Failed runs that one message counts; the others come with the next tick."""
MOST_TRIES: Final = 12
"""Messages that are tried before the failures they report are given up; about two hours."""
_FIRST_WAIT, _LONGEST_WAIT = 30.0, 900.0
_LATEST: Final = 4_102_444_800.0
"""Seconds since 1970 of the year 2100."""
_FAILED: Final = dg.DagsterEventType.RUN_FAILURE
_HEADER: Final = re.compile(rf"^\s*(\[\s*{ALERTS.name}\s*\]|{ALERTS.name}\s*[.=])", re.MULTILINE)


@dataclass
class Sent:
    """The cursor: what was reported.

    after: number of the event of the last failed run that was reported or given up; -1 before the
        first tick.
    not_before: seconds since 1970; no try is made before.
    lost: failed runs that were given up since the last message that was taken.
    """

    after: int = -1
    tries: int = 0
    not_before: float = 0.0
    lost: int = 0

    @classmethod
    def read(cls, cursor: str | None) -> "Sent":
        """Returns what a cursor says; that of a first tick where it says nothing."""
        try:
            values = json.loads(cursor or "{}")
            known = {each.name: each.type for each in fields(cls)}
            read = cls(**{name: known[name](values[name]) for name in known if name in values})  # type: ignore[operator]
            # A person can type any cursor: no alert would be sent before such a time.
            return read if read.not_before < _LATEST else cls()
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            return cls()

    def write(self) -> str:
        """The cursor."""
        return json.dumps(asdict(self))


def is_configured(lake: Lake) -> bool:
    """Whether the data root's settings have a table `[alerts]`, right or wrong."""
    file = lake.root / FILE
    try:
        if not file.is_file():
            return False
        real = file.resolve()
        return ALERTS.name in read_toml(real, root=real.parent)
    except BadInput:
        # Its tick says what is wrong with the file.
        return bool(_HEADER.search(file.read_text(errors="replace")[: 1 << 20]))
    except OSError:
        return False


def settings_of(lake: Lake) -> tuple[AlertSettings, str]:
    """Returns the settings, and the address of the webhook.

    Raises BadInput, naming file, table and key, where they are wrong; it never has the address.
    """
    table = lake.settings(ALERTS.name)
    try:
        chosen = AlertSettings(**table)
        return chosen, chosen.address(os.environ)
    except ValueError as error:
        raise BadInput(table.file, f"{ALERTS.header} {error}") from None


def alerts_sensor(
    send: Callable[[str, dict[str, Any]], None] = post, now: Callable[[], float] = time.time
) -> dg.SensorDefinition:
    """Returns the sensor."""

    @dg.sensor(
        name="alerts",
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Says to the webhook of [alerts] in gristmill.toml which runs failed: one message a "
            "tick, however many runs. It starts no run. What failed before it was first switched "
            "on is not reported."
        ),
    )
    def alerts(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SensorResult:
        sent = Sent.read(context.cursor)
        if sent.after < 0:
            sent.after = _newest(context.instance)
            return _result("failures from now on are reported", sent)
        chosen, address = settings_of(lake)
        failed = _failed_after(context.instance, sent.after)
        if not failed:
            return _result("no run failed", sent)
        if now() < sent.not_before:
            wait = sent.not_before - now()
            return _result(f"{len(failed):,} runs failed; the next try is in {wait:,.0f} s", sent)
        content = message(context.instance, [run for _, run in failed], chosen.ui, sent.lost)
        try:
            send(address, content)
        except NotSent as error:
            said = _not_sent(sent, failed, str(error), now())
            context.log.error(said)
            return _result(said, sent)
        said = f"reported {len(failed):,} failed runs"
        return _result(said, Sent(after=failed[-1][0]))

    return alerts


def _not_sent(sent: Sent, failed: list[tuple[int, str]], why: str, now: float) -> str:
    """Bring `sent` up to date after a message that was not taken, and say what comes next."""
    sent.tries += 1
    if sent.tries < MOST_TRIES:
        wait = min(_FIRST_WAIT * 2 ** (sent.tries - 1), _LONGEST_WAIT)
        sent.not_before = now + wait
        return f"{why}; try {sent.tries} of {MOST_TRIES}, the next in {wait:,.0f} s"
    sent.after, sent.lost = failed[-1][0], sent.lost + len(failed)
    sent.tries, sent.not_before = 0, 0.0
    runs = ", ".join(run[:8] for _, run in failed[:20])
    return f"{why}; given up after {MOST_TRIES} tries: {len(failed):,} failed runs, as {runs}"


def _failed_after(instance: dg.DagsterInstance, after: int) -> list[tuple[int, str]]:
    """Number of the event and id of the runs that failed after an event, the oldest first."""
    filter_ = dg.RunStatusChangeRecordsFilter(_FAILED, after_storage_id=after)
    found = instance.fetch_run_status_changes(filter_, limit=MOST_RUNS, ascending=True).records
    return [(record.storage_id, record.event_log_entry.run_id) for record in found]


def _newest(instance: dg.DagsterInstance) -> int:
    found = instance.fetch_run_status_changes(_FAILED, limit=1, ascending=False).records
    return max((record.storage_id for record in found), default=0)


def _result(said: str, sent: Sent) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=said, cursor=sent.write())
