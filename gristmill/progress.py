"""How far a long piece of work has come, for a terminal, for a log, or for nobody.

What is counted belongs to the caller: it says `start`, `advance` and `finish`,
and does not know who looks on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class Progress(Protocol):
    """One piece of work at a time; `start` again begins the next one."""

    def start(self, total: int | None, unit: str) -> None:
        """Begin: `total` units in all, None if unknown; the unit "bytes" is shown as sizes."""

    def advance(self, n: int = 1) -> None:
        """`n` more units are done."""

    def note(self, text: str) -> None:
        """What is being worked on now."""

    def finish(self) -> None:
        """The work is over, well or not; may be said twice."""


class Silent:
    """Shows nothing."""

    def start(self, total: int | None, unit: str) -> None: ...

    def advance(self, n: int = 1) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


def _amount(n: float, unit: str) -> str:
    if unit != "bytes":
        return f"{n:,.0f} {unit}"
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n >= size:
            return f"{n / size:.1f} {name}"
    return f"{n:.0f} bytes"


class Logged:
    """A line in a log every `every` seconds at most, and one at the end.

    clock: seconds from a monotonic clock.
    """

    def __init__(
        self,
        logger: logging.Logger,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger, self._every, self._clock = logger, every, clock
        self._running = False

    def start(self, total: int | None, unit: str) -> None:
        self.finish()
        self._total, self._unit, self._done, self._note = total, unit, 0, ""
        self._began = self._said = self._clock()
        self._running = True

    def advance(self, n: int = 1) -> None:
        if not self._running:
            return
        self._done += n
        if self._clock() - self._said >= self._every:
            self._said = self._clock()
            self._say()

    def note(self, text: str) -> None:
        self._note = text

    def finish(self) -> None:
        if self._running:
            self._running = False
            self._note = "finished"
            self._say()

    def _say(self) -> None:
        seconds = self._clock() - self._began
        parts = [_amount(self._done, self._unit)]
        if self._total is not None:
            share = 100 * self._done / self._total if self._total else 100
            parts.append(f"of {_amount(self._total, self._unit)} ({share:.0f} %)")
        if seconds > 0:
            parts.append(f"in {seconds:.0f} s, {_amount(self._done / seconds, self._unit)}/s")
        self._logger.info("%s%s", " ".join(parts), f": {self._note}" if self._note else "")


class Terminal:
    """A bar that redraws itself; on a console that is no terminal only its end is written."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True)
        self._bar: _Bar | None = None

    def start(self, total: int | None, unit: str) -> None:
        self.finish()
        self._bar = _Bar(self._console, total, unit)

    def advance(self, n: int = 1) -> None:
        if self._bar is not None:
            self._bar.rich.advance(self._bar.task, n)

    def note(self, text: str) -> None:
        if self._bar is not None:
            from rich.markup import escape

            self._bar.rich.update(self._bar.task, description=escape(text))

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.rich.stop()
            self._bar = None


class _Bar:
    def __init__(self, console: Console, total: int | None, unit: str) -> None:
        from rich import progress as rich

        size: list[rich.ProgressColumn] = [
            rich.MofNCompleteColumn(),
            rich.TextColumn(unit),
        ]
        if unit == "bytes":
            size = [rich.DownloadColumn(), rich.TransferSpeedColumn()]
        self.rich = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            *size,
            rich.TimeRemainingColumn(),
            console=console,
        )
        self.task = self.rich.add_task("", total=total)
        self.rich.start()


def silent() -> Progress:
    """Progress that nobody sees; what library functions take by default."""
    return Silent()


def terminal() -> Progress:
    """Progress as a bar on standard error."""
    return Terminal()


def logged(logger: logging.Logger, every: float = 10.0) -> Progress:
    """Progress as lines in a log, one every `every` seconds at most."""
    return Logged(logger, every)
