"""The log of `gristmill ui`: one line a run, what sensors found, and warnings of the services.

`--verbose` shows the whole log as the services write it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections import deque
from contextlib import suppress
from typing import Final

import click

from gristmill.printable import printable

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_LINE: Final = re.compile(r"\S+ (\S+) \S+ - (?P<logger>\S+) - (?P<level>[A-Z]+) - (?P<text>.*)")
_RUN: Final = re.compile(
    r"(?P<job>\S+) - (?P<run>[0-9a-f-]{36}) - (?:\d+ - )?RUN_(?P<end>SUCCESS|FAILURE|CANCELED) - "
)
_ENDS: Final = {"SUCCESS": "succeeded", "FAILURE": "failed", "CANCELED": "was canceled"}
_SKIPPED: Final = re.compile(r"Sensor (?P<sensor>\w+_drops) skipped: (?P<why>.*)")
_SENSORS: Final = "dagster.daemon.SensorDaemon"
_NEWS: Final = "Added partition keys"
# Dagster says it once of each new instance, and nobody needs to act on it.
_OF_NEW_INSTANCES: Final = "No cursor for event type"
_NOTHING_NEW: Final = "no new drop"
_MOST_KEPT: Final = 100
_PIPE_BYTES: Final = 1 << 20


class ShortLog:
    """A pipe that services write their log to; `drain` prints what a person wants to know.

    end: descriptor for the output of the services.
    """

    def __init__(self) -> None:
        self._read, self.end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read, False)
        with suppress(OSError):  # a user may have no right to a larger pipe
            fcntl.fcntl(self.end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._rest = b""
        self._is_shown = True
        self._skipped: dict[str, str] = {}
        self._kept: deque[str] = deque(maxlen=_MOST_KEPT)

    def drain(self) -> None:
        """Print the news among the lines that were written since the last call."""
        with suppress(BlockingIOError):
            while octets := os.read(self._read, _PIPE_BYTES):
                *lines, self._rest = (self._rest + octets).split(b"\n")
                for line in lines:
                    text = _COLOURS.sub("", line.decode(errors="replace"))
                    if (news := self.news(text)) is None:
                        self._kept.append(text)
                    else:
                        click.echo(printable(news))

    def say_rest(self) -> None:
        """Print the last lines that were left out: they may say why a service ended."""
        self.drain()
        for line in self._kept:
            click.echo(printable(line), err=True)

    def close(self) -> None:
        """Print what is left, and close the pipe."""
        self.drain()
        os.close(self._read)
        os.close(self.end)

    def news(self, line: str) -> str | None:
        """Returns a line of the log as a person reads it; None for one that is left out.

        line: without its end and without colours. One that no logger wrote, as of a stack trace,
            belongs to the line before it.
        """
        found = _LINE.fullmatch(line)
        if found is None:
            return line if self._is_shown else None
        logger, text = found["logger"], found["text"]
        said = self._of_run(text) if logger == "dagster" else self._of_service(logger, text)
        is_wrong = found["level"] in ("WARNING", "ERROR", "CRITICAL") and logger != "dagster"
        if is_wrong and not text.startswith(_OF_NEW_INSTANCES):
            said = f"{found['level'].lower()}: {text}"
        self._is_shown = is_wrong and said is not None
        return None if said is None else f"{found[1]} {said}"

    def _of_run(self, text: str) -> str | None:
        found = _RUN.match(text)
        if found is None:
            return None
        job = found["job"].removeprefix("__anonymous_asset_job_").strip("_")
        return f"run {found['run'][:8]} of {job} {_ENDS[found['end']]}"

    def _of_service(self, logger: str, text: str) -> str | None:
        if logger != _SENSORS:
            return None
        if (found := _SKIPPED.fullmatch(text)) is None:
            return text if text.startswith(_NEWS) else None
        sensor, why = found["sensor"], found["why"]
        before = self._skipped.get(sensor, _NOTHING_NEW)
        self._skipped[sensor] = why
        return None if why in (before, _NOTHING_NEW) else f"{sensor}: {why}"
