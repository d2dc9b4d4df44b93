"""How far a piece of work has come: one interface for builders, downloads and verification."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

from gristmill.contract import NothingToBuild
from gristmill.run import amounts

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
        """Note how far the work is, as for a download that goes on or begins again."""
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
_SINK: ContextVar[Sink | None] = ContextVar("sink", default=None)


def current_progress() -> Progress:
    """Returns the progress of the work that this thread does, for code that is given none.

    Laws use it. Without `Progress.current` it reports nothing.
    """
    return _CURRENT.get()


@contextmanager
def reporting_to(sink: Sink) -> Iterator[None]:
    """Send the reports of all work that begins within, in this thread, to this sink."""
    token = _SINK.set(sink)
    try:
        yield
    finally:
        _SINK.reset(token)


def reporter(default: Sink | None = None, work: str = "", every: float = 0.1) -> Progress:
    """Returns the progress of a piece of work, for the sink of `reporting_to` if there is one.

    default: the sink otherwise; None (default) reports nothing.
    """
    return Progress(_SINK.get() or default, every, work)
