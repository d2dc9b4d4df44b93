"""Sinks that show progress to people: plain lines in a log or a file, bars in a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from gristmill.printable import cut, printable
from gristmill.run import amounts
from gristmill.run.progress import Progress, Report, reporter, reporting_to

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

_LONGEST_LINE = 300


class LogLines:
    """A sink that writes a line of long work every so often, and each note.

    every: seconds between two lines of stages, at least; also before the first one. Default 10.
    named: begin each line with the work, which also has a line at its end; default False.
    """

    def __init__(
        self, write: Callable[[str], object], every: float = 10.0, *, named: bool = False
    ) -> None:
        self._write, self._every, self._named = write, every, named
        self._due = time.monotonic() + every
        self._lock = Lock()

    def __call__(self, report: Report) -> None:
        """Write a report if it is due."""
        with self._lock:
            if report.moment == "stage":
                if (now := time.monotonic()) < self._due:
                    return
                self._due = now + self._every
            elif report.moment == "begin" or (report.moment == "end" and not self._named):
                return
            self._write(_line(report, self._named))


class TerminalBar:
    """A sink that shows one live bar for each piece of work on a terminal; a context manager.

    Work without a name has a bar for each stage. A bar goes away at the end of its work, all of
    them at the end of the context. Notes stay as lines above.
    """

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            refresh_per_second=4,
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
        if report.moment == "note":
            line = _line(report, named=True)
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        elif report.moment == "stage":
            # A total that is not known yet shows as a bar that moves.
            amount = str(report) if report.work else report.amount
            self._bars.update(
                self._tasks[name], total=report.total, completed=report.done, amount=amount
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
    from rich.console import Console

    with _stderr() as stream:
        console = Console(file=stream)
        # A dumb terminal cannot move its cursor up to a bar.
        if console.is_terminal and not console.is_dumb_terminal:
            with TerminalBar(console) as bar, reporting_to(bar):
                yield reporter()
        else:
            with reporting_to(
                LogLines(lambda line: print(line, file=stream, flush=True), named=True)
            ):
                yield reporter()


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


def _line(report: Report, named: bool) -> str:
    line = printable(cut(str(report), _LONGEST_LINE))
    if report.moment == "end":
        line = f"{line} ({amounts.duration(report.seconds)})".lstrip()
    return f"{printable(report.work)}: {line}" if named and report.work else line
