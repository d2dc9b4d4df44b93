"""How far a piece of work has come: one interface for builders, downloads and verification.

Work opens a stage and advances it, once a part or batch and never once a row. A
sink, which the caller gives, receives reports: `TerminalBar`, `log_lines`, or any
function. Without a sink nothing is counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.progress import TaskID

Unit = Literal["rows", "games", "bytes", "files"]


@dataclass(frozen=True)
class Report:
    """How far one stage has come.

    stage: name of the stage, such as "read".
    done: units done.
    total: units to do in all, None where that is not known.
    unit: what is counted.
    """

    stage: str
    done: int
    total: int | None
    unit: Unit

    def __str__(self) -> str:
        total = "" if self.total is None else f" of {self.total:,}"
        return f"{self.stage}: {self.done:,}{total} {self.unit}"


Sink = Callable[[Report], None]


class Stage:
    """One stage under way, made by `Progress.stage`. Safe to use from several threads."""

    def __init__(self, start: Report, sink: Sink | None, every: float) -> None:
        self._name, self._unit = start.stage, start.unit
        self._done, self._total = start.done, start.total
        self._sink, self._every = sink, every
        self._lock = Lock()
        self._due = 0.0
        self._delivered: Report | None = None

    def advance(self, amount: int) -> None:
        """Note that `amount` more units are done."""
        if self._sink is not None:
            with self._lock:
                self._done += amount
                self._deliver_if_due()

    def expect(self, amount: int) -> None:
        """Raise the total by `amount` units."""
        if self._sink is not None:
            with self._lock:
                self._total = (self._total or 0) + amount
                self._deliver_if_due()

    def move_to(self, done: int, total: int | None) -> None:
        """Note how far the work is, as for a download that goes on or begins again."""
        if self._sink is not None:
            with self._lock:
                self._done, self._total = done, total
                self._deliver_if_due()

    def deliver(self) -> None:
        """Give the sink the report of now, unless it has it already."""
        if self._sink is not None:
            with self._lock:
                self._deliver()

    def _deliver_if_due(self) -> None:
        if time.monotonic() >= self._due:
            self._deliver()

    def _deliver(self) -> None:
        report = Report(self._name, self._done, self._total, self._unit)
        if report != self._delivered and self._sink is not None:
            self._delivered = report
            self._sink(report)
            self._due = time.monotonic() + self._every


class Progress:
    """Where the reports of a piece of work go.

    sink: called with each report, in the thread that advances the stage and with
        the stage locked, so it must not use the stage. An error of the sink fails
        the work. None: nothing is reported.
    every: seconds between two reports of a stage, at least. The first and the
        last report of a stage are always delivered.
    """

    def __init__(self, sink: Sink | None = None, every: float = 0.1) -> None:
        self._sink = sink
        self._every = every

    @contextmanager
    def stage(self, name: str, unit: Unit, total: int | None = None) -> Iterator[Stage]:
        """Open a stage, and deliver its last report on leaving, also after an error."""
        stage = Stage(Report(name, 0, total, unit), self._sink, self._every)
        stage.deliver()
        try:
            yield stage
        finally:
            stage.deliver()


SILENT = Progress()
"""Reports nothing."""


def log_lines(logger: logging.Logger) -> Sink:
    """A sink that writes a line for each report; give `Progress` some seconds as `every`."""

    def write(report: Report) -> None:
        logger.info("%s", report)

    return write


class TerminalBar:
    """A sink that shows a bar for each stage on stderr; a context manager.

    The bars go away at its end. Nothing is shown where stderr is no terminal.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True)
        # Into a file or a pipe the bar would only write an empty line.
        self._bars = Bars(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, report: Report) -> None:
        """Show a report."""
        if report.stage not in self._tasks:
            self._tasks[report.stage] = self._bars.add_task(report.stage, amount="")
        self._bars.update(
            self._tasks[report.stage],
            total=report.total,
            completed=report.done,
            amount=_amount(report),
        )

    def __enter__(self) -> TerminalBar:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()


def _amount(report: Report) -> str:
    """The numbers of a report in few characters: `1.2 MB of 3.4 MB`, `5 of 9 rows`."""
    if report.unit != "bytes":
        return str(report).partition(": ")[2]
    from rich.filesize import decimal

    total = "" if report.total is None else f" of {decimal(report.total)}"
    return f"{decimal(report.done)}{total}"
