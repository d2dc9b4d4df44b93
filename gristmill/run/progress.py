"""Progress for a terminal, for a log, or for nobody, behind one small interface."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Protocol, Self


class Progress(Protocol):
    """Bytes (or rows) done out of those expected. A context manager; safe from threads."""

    def expect(self, amount: int) -> None:
        """Raise the total by `amount`."""

    def advance(self, amount: int) -> None:
        """Say that `amount` more is done."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class _Counting:
    """Keeps the two sums; what is shown of them is a subclass's."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self._lock = threading.Lock()

    def expect(self, amount: int) -> None:
        with self._lock:
            self.total += amount
            self.show()

    def advance(self, amount: int) -> None:
        with self._lock:
            self.done += amount
            self.show()

    def show(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class _Logged(_Counting):
    def __init__(self, logger: logging.Logger, what: str, every: float) -> None:
        super().__init__()
        self._logger, self._what, self._every = logger, what, every
        self._last = time.monotonic()

    def show(self) -> None:
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._logger.info("%s: %s of %s", self._what, f"{self.done:,}", f"{self.total:,}")


class _Terminal(_Counting):
    def __init__(self, what: str) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        console = Console(stderr=True)
        # Into a file or a pipe the bar would only write an empty line.
        self._bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(what, total=0)

    def show(self) -> None:
        self._bar.update(self._task, total=self.total, completed=self.done)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()


def silent() -> Progress:
    """Shows nothing."""
    return _Counting()


def logged(logger: logging.Logger, what: str, every: float = 10.0) -> Progress:
    """A line in `logger` at most every `every` seconds."""
    return _Logged(logger, what, every)


def terminal(what: str) -> Progress:
    """A bar of bytes on stderr that goes away when all is done."""
    return _Terminal(what)
