"""How far a piece of work has come: one interface for builders, downloads and verification."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Literal, TextIO

from gristmill.contract import NothingToBuild
from gristmill.printable import cut, printable
from gristmill.run import amounts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

Unit = Literal["rows", "games", "bytes", "files", "laws", "drops"]
Moment = Literal["begin", "stage", "note", "end"]


@dataclass(frozen=True)
class Report:
    """How far one stage has come, or one line about the work.

    total: units to do in all, None where that is not known.
    work: what the stage belongs to, such as an asset and its partition; may be empty.
    moment: "stage" (default), else what happened to the work: its "begin", its "end", or a "note".
    seconds: since the work began, at its "end".
    """

    stage: str
    done: int
    total: int | None
    unit: Unit
    work: str = ""
    moment: Moment = "stage"
    note: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def amount(self) -> str:
        """How much is done: `1.2 MB of 3.4 MB`, `5 of 9 rows`."""
        if self.total is None:
            return amounts.count(self.done, self.unit)
        done = amounts.size(self.done) if self.unit == "bytes" else f"{self.done:,}"
        return f"{done} of {amounts.count(self.total, self.unit)}"

    def __str__(self) -> str:
        return f"{self.stage}: {self.amount}" if self.moment == "stage" else self.note


Sink = Callable[[Report], None]


class Stage:
    """One stage under way, made by `Progress.stage`. Safe to use from several threads."""

    def __init__(self, start: Report, sink: Sink | None, every: float) -> None:
        self._start = start
        self._done, self._total = start.done, start.total
        self._sink, self._every = sink, every
        self._lock = Lock()
        self._due = 0.0
        self._delivered: tuple[int, int | None] | None = None

    def advance(self, amount: int) -> None:
        """Note that `amount` more units are done."""
        if self._sink is not None:
            with self._lock:
                self._deliver(self._done + amount, self._total)

    def expect(self, amount: int) -> None:
        """Raise the total by `amount` units."""
        if self._sink is not None:
            with self._lock:
                self._deliver(self._done, (self._total or 0) + amount)

    def move_to(self, done: int, total: int | None) -> None:
        """Note how far the work is, as for a download that continues or begins again."""
        if self._sink is not None:
            with self._lock:
                self._deliver(done, total)

    def finish(self) -> None:
        """Note that what is done is all, where no total is known."""
        if self._total is None:
            self._total = self._done

    def deliver(self) -> None:
        """Give the sink the report of now, unless it has it already."""
        if self._sink is not None:
            with self._lock:
                self._deliver(self._done, self._total, is_due=True)

    def _deliver(self, done: int, total: int | None, is_due: bool = False) -> None:
        self._done, self._total = done, total
        now, state = time.monotonic(), (done, total)
        if self._sink is not None and (is_due or now >= self._due) and state != self._delivered:
            self._delivered, self._due = state, now + self._every
            self._sink(Report(self._start.stage, *state, self._start.unit, self._start.work))

    def say(self, note: str) -> None:
        """Give the sink a line about the stage, such as why a request is made again."""
        if self._sink is not None:
            start = self._start
            self._sink(
                Report(
                    start.stage, 0, None, start.unit, start.work, "note", f"{start.stage}: {note}"
                )
            )


class Progress:
    """Where the reports of a piece of work go.

    sink: called with each report, in the thread that advances the stage and with
        the stage locked, so it must not use the stage. An error of the sink fails
        the work. None: nothing is reported.
    every: seconds between two reports of a stage, at least. The first and the
        last report of a stage are always delivered.
    work: what is done, such as an asset and its partition; empty by default.
    """

    def __init__(self, sink: Sink | None = None, every: float = 0.1, work: str = "") -> None:
        self._sink = sink
        self._every = every
        self._work = work

    @contextmanager
    def stage(self, name: str, unit: Unit, total: int | None = None) -> Iterator[Stage]:
        """Open a stage, and deliver its last report on leaving, also after an error.

        A total that is not known is known at the end: it is what was done.
        """
        stage = Stage(Report(name, 0, total, unit, self._work), self._sink, self._every)
        stage.deliver()
        try:
            yield stage
            stage.finish()
        finally:
            stage.deliver()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Let `current_progress` return this progress within, in this thread."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def say(self, note: str) -> None:
        """Give the sink a line about the work."""
        self._give("note", note)

    @contextmanager
    def working(self) -> Iterator[list[str]]:
        """Report the begin and the end of the work.

        Gives a list; the last line that is put into it is the line of the end. After an error
        that is the first line of its text.
        """
        began = time.monotonic()
        lines: list[str] = []
        self._give("begin")
        try:
            yield lines
        except BaseException as error:
            lines.append(_ended(error))
            raise
        finally:
            self._give("end", lines[-1] if lines else "", time.monotonic() - began)

    def _give(self, moment: Moment, note: str = "", seconds: float = 0.0) -> None:
        if self._sink is not None:
            self._sink(Report("", 0, None, "files", self._work, moment, note, seconds=seconds))


def _ended(error: BaseException) -> str:
    """How work ended that raised an error."""
    if not isinstance(error, Exception):
        return "stopped"
    how = "not built" if isinstance(error, NothingToBuild) else "failed"
    reason = str(error).strip() or type(error).__name__
    return f"{how}: {reason.splitlines()[0]}"


SILENT = Progress()
"""Reports nothing."""

_CURRENT: ContextVar[Progress] = ContextVar("current", default=SILENT)


def current_progress() -> Progress:
    """Returns the progress of the work that this thread does, for code that is given none.

    Laws use it. Without `Progress.current` it reports nothing.
    """
    return _CURRENT.get()


def reporter(default: Sink | None = None, work: str = "") -> Progress:
    """Returns the progress of a piece of work, for the sink of the current one if it has one.

    default: the sink otherwise; None (default) reports nothing.
    """
    return Progress(_CURRENT.get()._sink or default, work=work)


_LONGEST_LINE, _EVERY = 300, 10.0


class LogLines:
    """A sink that writes a line of long work every ten seconds, and each note.

    named: begin each line with the work, which also has a line at its end; default False.
    """

    def __init__(self, write: Callable[[str], object], *, named: bool = False) -> None:
        self._write, self._named = write, named
        self._due = time.monotonic() + _EVERY
        self._lock = Lock()

    def __call__(self, report: Report) -> None:
        """Write a report if it is due."""
        with self._lock:
            if report.moment == "stage":
                if (now := time.monotonic()) < self._due:
                    return
                self._due = now + _EVERY
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
    with _stderr() as stream:
        # Without rich, which takes longer to import than a small command works.
        if stream.isatty() or "FORCE_COLOR" in os.environ:
            from rich.console import Console

            console = Console(file=stream)
            if console.is_terminal and not console.is_dumb_terminal:
                with TerminalBar(console) as bar, (shown := Progress(bar)).current():
                    yield shown
                return
        lines = LogLines(lambda line: print(line, file=stream, flush=True), named=True)
        with (shown := Progress(lines)).current():
            yield shown


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
