"""Ctrl-C (SIGINT) and SIGTERM while a command works: none is lost, whoever handles it.

Python raises an exception wherever the main thread is, which may be in a callback or a finalizer:
there it is printed and dropped. A library may also turn it into an error of its own, and the work
continues with the next part. So the signals are counted beside their handlers, and an exception
waits for a moment while the main thread is in a database library, which would print a stack trace.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

STATUS: Final = 130
"""Exit status of a command that was interrupted, as shells have it: 128 and the signal."""

_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM})
Handler = Callable[[int, FrameType | None], Any]

# A callback that dropped the exception, or a query, needs a moment to return.
_AGAIN_SECONDS: Final = 0.05
_MOST_WAITS: Final = 40
_DATABASES: Final = ("sqlalchemy", "alembic", "dagster._core.storage")


class _Watch:
    """The signals that came since it began."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._process, self._has_come, self._waits = os.getpid(), False, 0
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        self._handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in self._handlers.items():
            if handler is signal.default_int_handler:
                signal.signal(number, patient(signal.default_int_handler))

    @property
    def has_come(self) -> bool:
        """Whether one of the signals came."""
        if os.getpid() != self._process:
            return False  # a fork of the process that watches
        with suppress(BlockingIOError):
            while numbers := os.read(self._read, 4096):
                self._has_come = self._has_come or not _SIGNALS.isdisjoint(numbers)
        return self._has_come

    def close(self) -> None:
        """Stop watching."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._read)
        os.close(self._write)

    def _dropped(self, found: Any) -> None:
        """Send the signal again where its exception was dropped."""
        if issubclass(found.exc_type, Exception) or not self.has_come:
            self._hook(found)
            return
        self.send_again()

    def has_to_wait(self, frame: FrameType | None) -> bool:
        """Whether code of a database library is under way, which has had less than two seconds."""
        self._waits += 1
        while frame is not None and self._waits <= _MOST_WAITS:
            if str(frame.f_globals.get("__name__")).startswith(_DATABASES):
                return True
            frame = frame.f_back
        return False

    def send_again(self) -> None:
        """Send SIGINT to this process in a moment."""
        again = threading.Timer(_AGAIN_SECONDS, _send_again, [self])
        again.daemon = True
        again.start()


_watch: _Watch | None = None


@contextmanager
def watched() -> Iterator[None]:
    """Watch for the signals within, in the main thread; elsewhere nothing is watched."""
    global _watch
    if _watch is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    _watch = watch = _Watch()
    try:
        yield
    finally:
        _watch = None
        watch.close()


def patient(handler: Handler) -> Handler:
    """Returns a handler of SIGINT that leaves code of a database library the time to end.

    A handler that is patient is returned as it is.
    """
    if getattr(handler, "is_patient", False):
        return handler

    def handle(number: int, frame: FrameType | None) -> None:
        if _watch is not None and _watch.has_to_wait(frame):
            _watch.send_again()
        else:
            handler(number, frame)

    handle.is_patient = True  # type: ignore[attr-defined]
    return handle


def raise_again() -> None:
    """Raise KeyboardInterrupt if one of the signals came since `watched` began.

    To be called between parts of long work. Nothing happens where nobody watches.
    """
    if _watch is not None and _watch.has_come:
        raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Do what is within to its end, and raise KeyboardInterrupt after it; only where one watches.

    For short work alone.
    """
    if _watch is None:
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if getattr(handler, "is_patient", False):
            signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    raise_again()


@contextmanager
def not_for_children() -> Iterator[None]:
    """Processes that are started within do not get Ctrl-C: their parent ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        # It may raise what came before.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave(*_: object) -> None:
    """The handler of what is held: the watch has the signal."""


def _send_again(watch: _Watch) -> None:
    if _watch is watch:
        os.kill(os.getpid(), signal.SIGINT)


def _forget_in_child() -> None:
    """In a fork, signals are its own: its parent must not count them."""
    if _watch is not None:
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_forget_in_child)
