"""The log of `gristmill ui`: one line for each run, what the sensors find, and what goes wrong.

Dagster's own programs write a line for every tick and for every event of a run;
`gristmill ui --verbose` shows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gristmill.printable import plain

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_LINE: Final = re.compile(
    r"\S+ (?P<time>\S+) \S+ - (?P<logger>dagster\S*) - (?P<level>[A-Z]+) - (?P<text>.*)"
)
_EVENT: Final = re.compile(r"\S+ - (?P<run>[0-9a-f]{8}-[0-9a-f-]{27}) - \d+ - (?P<text>.*)")
_ENDS: Final = {
    "RUN_SUCCESS": "succeeded",
    "RUN_FAILURE": "failed",
    "RUN_CANCELED": "was stopped",
}
_MESSAGE: Final = re.compile(r"\S+ - (?P<run>[0-9a-f]{8}-[0-9a-f-]{27}) - (?P<text>.*)")
_PUBLISHED: Final = re.compile(r"(?P<step>\S+) - ASSET_MATERIALIZATION - ")
# What Dagster says of each new instance, of steps after one that failed, and what a sensor says
# that found nothing.
_EXPECTED: Final = re.compile(r"No cursor for event type|.* - Dependencies for step \S+ .*")
_NO_NEWS: Final = ("no new drop", "every check shows what it last found")
_MOST_NAMED: Final = 3
_SKIPPED: Final = re.compile(r"Sensor (?P<sensor>\S+) skipped: (?P<reason>.*)")
_ADDED: Final = re.compile(
    r"Added partition keys to dynamic partitions definition '(?P<name>\w+)': \[(?P<keys>.*)\]"
)


class ShortLog:
    """Chooses from the lines of one program that Dagster started."""

    def __init__(self) -> None:
        self._is_shown = True
        """Whether lines without a head of their own, as of a stack trace, are shown."""
        self._published: dict[str, list[str]] = {}
        """The assets that a run published, by its id."""
        self._reasons: dict[str, str] = {}
        """The last reason of each sensor."""

    def lines(self, line: str) -> Iterator[str]:
        """Yield what is shown of a line.

        line: without its end. What is no line of Dagster's log goes with the line before it.
        """
        bare = _COLOURS.sub("", line)
        found = _LINE.fullmatch(bare)
        if found is None:
            if self._is_shown and bare.strip():
                yield plain(bare)
            return
        event = _EVENT.fullmatch(found["text"])
        if found["logger"] == "dagster" and event is not None:
            shown = self._of_run(event["run"], event["text"])
            self._is_shown = False
        else:
            self._is_shown = is_problem = self._is_problem(found["level"], found["text"])
            shown = _of_its_run(found["text"]) if is_problem else self._news(found["text"])
        if shown:
            yield plain(f"{found['time']} {shown}")

    def _is_problem(self, level: str, text: str) -> bool:
        return level in ("WARNING", "ERROR", "CRITICAL") and not _EXPECTED.match(text)

    def _of_run(self, run: str, text: str) -> str:
        """The line of a run that ended; empty for its other events."""
        if found := _PUBLISHED.match(text):
            asset = found["step"].replace("__", "/")
            names = self._published.setdefault(run, [])
            if asset not in names:
                names.append(asset)
        end = next((word for kind, word in _ENDS.items() if text.startswith(f"{kind} - ")), None)
        if end is None:
            return ""
        names = self._published.pop(run, [])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        published = f": {', '.join(names[:_MOST_NAMED])}{more}" if names else ""
        page = f", see /runs/{run}" if end == "failed" else ""
        return f"run {run[:8]} {end}{published}{page}"

    def _news(self, text: str) -> str:
        """What a sensor found that it did not say before; empty for anything else."""
        if added := _ADDED.fullmatch(text):
            return f"{added['name']}: new {added['keys'].replace(chr(39), '')}"
        skipped = _SKIPPED.fullmatch(text)
        if skipped is None or self._reasons.get(skipped["sensor"]) == skipped["reason"]:
            return ""
        self._reasons[skipped["sensor"]] = skipped["reason"]
        is_news = skipped["reason"] not in _NO_NEWS
        return f"{skipped['sensor']}: {skipped['reason']}" if is_news else ""


def _of_its_run(text: str) -> str:
    """A message, with the short id of the run that it is of, if it is of one."""
    found = _MESSAGE.fullmatch(text)
    return f"run {found['run'][:8]} {found['text']}" if found else text
