"""Locks between builders: one builder for each artifact partition; who stops or waits names it.

A lock is `flock` on one file. The kernel releases it when its holder dies, so no lock outlives its
builder. Lock files stay: one that was removed while it is held would let a second holder lock a new
file of that name. Where a person removes one, its holder publishes nothing, since `confirm`
compares the file that is held with the one at the path.
Source: docs/publishing-details.md#locks-between-hosts.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.run.progress import SILENT, Progress

_REFUSED: Final = (errno.EROFS, errno.EACCES, errno.EPERM)
_POLL_SECONDS: Final = (0.001, 0.2)
"""The first and the longest pause between two looks of a waiter."""
_SILENT_SECONDS: Final = 3.0
"""A waiter says nothing for so long."""


class Busy(GristmillError):
    """Another builder is at work on the same artifact partition."""


class NotWritable(GristmillError, OSError):
    """A folder that cannot be written, as on a disk that is mounted read-only."""


class LostLock(GristmillError):
    """Another may have the lock by now, since its file was removed."""


class _Held(threading.local):
    """The lock files that this thread holds: the open file, and its path."""

    def __init__(self) -> None:
        self.files: list[tuple[int, Path]] = []


_held = _Held()


@contextmanager
def locked(
    path: Path,
    what: str,
    wait: bool = False,
    *,
    shared: bool = False,
    progress: Progress = SILENT,
) -> Iterator[None]:
    """Hold the lock file `path` while the body runs.

    wait: wait for the holder; default False.
    shared: hold it together with others that share it, and with nobody else; default False.
    progress: where a waiter says for whom it waits, after three seconds; default silent.

    Raises Busy where another process holds it and `wait` is False, NotWritable where the lock file
    cannot be made, GristmillError where the file system has no locks.
    """
    descriptor = _taken(path, shared, _Patience(what, wait, progress))
    held = (descriptor, path)
    _held.files.append(held)
    try:
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, _signature(), 0)
        yield
    finally:
        _held.files.remove(held)
        os.close(descriptor)


def confirm() -> None:
    """Compare all lock files that this thread holds with their paths: the step before a commit.

    Raises LostLock where one is not at its path any more; nothing may be committed then.
    """
    for descriptor, path in _held.files:
        if not _is_at(descriptor, path):
            raise LostLock(
                f"{path}: somebody removed this lock file while its holder was at work, so that "
                "another may have the lock: nothing is published; call the command again"
            )


def is_lost() -> bool:
    """Whether a lock of this thread is lost: what it guards belongs to another then."""
    return not all(_is_at(descriptor, path) for descriptor, path in _held.files)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open lock file is the one that others find at its path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


class _Patience:
    """What is done while another has the lock: an error, or another look after a pause."""

    def __init__(self, what: str, wait: bool, progress: Progress = SILENT) -> None:
        self._what, self._wait, self._progress = what, wait, progress
        self._pause, self._longest = _POLL_SECONDS
        self._due = time.monotonic() + _SILENT_SECONDS
        self._said = ""

    def wait_for(self, holder: str) -> None:
        """Return after a pause. Raises Busy where nobody waits."""
        if not self._wait:
            raise Busy(f"{self._what} is already being built by {holder}; this run stops")
        if time.monotonic() >= self._due and holder != self._said:
            self._progress.say(f"waits for {holder}, which has the lock of {self._what}")
            self._said = holder
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, self._longest)


def _taken(path: Path, shared: bool, patience: _Patience) -> int:
    """A descriptor of the lock file, locked: of the file that is at `path` then."""
    while True:
        descriptor = _opened(path)
        try:
            while not _is_taken(descriptor, path, shared):
                patience.wait_for(_holder(descriptor))
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # somebody removed the file: its next taker locks another one


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        refused = NotWritable(
            f"{path}: {error.strerror}: nothing is built, removed or pulled where this user cannot "
            "write; reading and `verify` work"
        )
        refused.errno = error.errno
        raise refused from error


def _is_taken(descriptor: int, path: Path, shared: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise GristmillError(
            f"{path}: this file system gives no lock (flock): {error.strerror}: nothing is built, "
            "removed or pulled without one; `gristmill doctor` says what it gives: put the data "
            "root on another"
        ) from error
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file `path` now."""
    try:
        with locked(path, path.name):
            return False
    except Busy:
        return True


def _signature() -> bytes:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps(
        {"process": os.getpid(), "host": socket.gethostname(), "since": started}
    ).encode()


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['process']} on host {holder['host']} since {holder['since']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "another builder"  # it holds the lock, but has not written its signature yet
