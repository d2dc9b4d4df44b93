"""Sinks that show progress to people: lines of a log, bars in a terminal, lines in a file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Final, TextIO

from gristmill.printable import cut, printable
from gristmill.run import amounts, kernels
from gristmill.run.progress import Progress, Report, reporter, reporting_to

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

_LONGEST_LINE = 300
_TAKEN_FOR_ONE: Final = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables by which rich takes a file for a terminal."""


class LogLines:
    """A sink that writes a line every so often, and each note; nothing for short work.

    every: seconds between two lines, at least; also before the first one. Default 10.
    """

    def __init__(self, write: Callable[[str], object], every: float = 10.0) -> None:
        self._write, self._every = write, every
        self._due = time.monotonic() + every

    def __call__(self, report: Report) -> None:
        """Write a report if it is due."""
        if report.moment == "note":
            self._write(_line(report))
        elif report.moment == "stage" and (now := time.monotonic()) >= self._due:
            self._write(_line(report))
            self._due = now + self._every


class PlainLines:
    """A sink for an output that is no terminal: a line for each end, and others every so often.

    Named work of more than a second has a line when it begins or goes on. Then long work has one
    every ten seconds; within the context, a thread sees to that also where a single step takes
    longer, and says for how long nothing changed and whether kernels are compiled. Work without a
    name has no other lines than those.

    write: takes a line; default: standard error.
    every: seconds between two lines, at least. Default 10.
    """

    def __init__(self, write: Callable[[str], object] | None = None, every: float = 10.0) -> None:
        self._write = write or partial(_write, sys.stderr)
        self._every = every
        self._written = time.monotonic()
        self._is_first = True
        self._begun = ""
        """The work that has had a line."""
        self._last: Report | None = None
        """The last report of the work or stage that goes on."""
        self._reported = self._written
        """When that came."""
        self._lock = RLock()
        self._ended = Event()
        self._thread = Thread(target=self._keep_on, name="progress", daemon=True)

    def __call__(self, report: Report) -> None:
        """Write a report if it is due."""
        with self._lock:
            self._last = None if report.moment == "end" else report
            self._reported = time.monotonic()
            since = self._reported - self._written
            if report.moment == "begin":
                if since >= 1 or self._is_first:
                    self._say(report, "begins")
            elif report.moment == "end":
                self._say(report, f"{_line(report)} ({amounts.duration(report.seconds)})".lstrip())
            elif report.moment == "note" or since >= self._patience(report):
                self._say(report, _line(report))

    def _patience(self, report: Report) -> float:
        is_new = report.work and report.work != self._begun
        return 1 if is_new else self._every

    def _say(self, report: Report, line: str) -> None:
        self._write(f"{printable(report.work)}: {line}" if report.work else line)
        self._written, self._begun, self._is_first = time.monotonic(), report.work, False

    def _keep_on(self) -> None:
        while not self._ended.wait(min(1.0, self._every)):
            with self._lock:
                if time.monotonic() - self._written < self._every:
                    continue
                if self._last:
                    self._say(self._last, self._again(self._last))
                else:  # nothing is reported, as while a hub is asked
                    passed = amounts.duration(time.monotonic() - self._reported)
                    self._write(f"at work for {passed}")
                    self._written = time.monotonic()

    def _again(self, report: Report) -> str:
        """A line of a report that was the last one for a while: its rate says nothing any more."""
        passed = amounts.duration(time.monotonic() - self._reported)
        if report.moment == "stage":
            line = f"{report.stage}: {report.amount}, unchanged for {passed}"
        elif report.moment == "note":
            line = f"{report}, {passed} ago"
        else:
            line = f"goes on after {passed}"
        if kernels.is_compiling():
            line += ", compiling"
        return printable(cut(line, _LONGEST_LINE))

    def __enter__(self) -> PlainLines:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()


class TerminalBar:
    """A sink that shows one live bar for each piece of work on a terminal; a context manager.

    Work without a name has a bar for each stage. A bar goes away at the end of its work, all of
    them at the end of the context. Notes stay as lines above. Nothing is shown where the output
    is no terminal.

    console: rich's console that shows the bars; default: one of standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[amount]}", markup=False),
        )
        console = console or Console(stderr=True)
        # Into a file or a pipe the bar would only write an empty line.
        self._bars = Bars(
            *columns,
            console=console,
            transient=True,
            refresh_per_second=4,
            disable=not console.is_terminal,
            # Else what the command prints to a file would go to the bars' terminal.
            redirect_stdout=sys.stdout.isatty(),
        )
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, report: Report) -> None:
        """Show a report."""
        name = report.work or report.stage
        if report.moment == "end":
            if name in self._tasks:
                self._bars.remove_task(self._tasks.pop(name))
            return
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(printable(name), total=None, amount="")
        task = self._tasks[name]
        if report.moment == "note":
            line = f"{printable(report.work)}: {_line(report)}" if report.work else _line(report)
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        elif report.moment == "stage":
            texts = (report.amount, report.speed)
            if report.work:
                texts = (f"{report.stage} {report.amount}", report.speed)
            self._bars.update(
                task,
                # An amount that is not known yet shows as a bar that moves.
                total=report.total,
                completed=report.done,
                amount=", ".join(filter(None, texts)),
            )

    def __enter__(self) -> TerminalBar:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()


@contextmanager
def shown_on_stderr() -> Iterator[Progress]:
    """Show what is reported within: as bars on a terminal, else as lines, on standard error.

    Gives a progress without a name. Work that takes its progress from `reporter` is shown, too.
    """
    with _stderr() as stream, _shown_on(stream) as shown, reporting_to(shown):
        yield reporter()


def _shown_on(stream: TextIO) -> TerminalBar | PlainLines:
    """Bars on a terminal, or where rich takes the stream for one; else lines."""
    if stream.isatty() or os.environ.keys() & _TAKEN_FOR_ONE:
        from rich.console import Console

        console = Console(file=stream)
        # A dumb terminal cannot move its cursor up to a bar.
        if console.is_terminal and not console.is_dumb_terminal:
            return TerminalBar(console)
    return PlainLines(partial(_write, stream))


@contextmanager
def _stderr() -> Iterator[TextIO]:
    """Standard error as it is now: a run of Dagster sends it to a file of the run's logs."""
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):  # it is no file, as in tests
        yield sys.stderr
        return
    with os.fdopen(descriptor, "w", errors="replace") as stream:
        yield stream


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def _line(report: Report) -> str:
    return printable(cut(str(report), _LONGEST_LINE))
