"""Locks between builders: one builder for each artifact partition; an error names the holder.

The kernel releases a lock when its holder dies, so no lock outlives its builder. Between hosts
a lease is held beside it (`gristmill.publish.storage.lease`) on a network file system.
Lock files stay: removing one would race with a builder that just opened it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.publish.storage import lease

_REFUSED: Final = (errno.EROFS, errno.EACCES, errno.EPERM)


class Busy(GristmillError):
    """Another builder is at work on the same artifact partition."""


class NotWritable(GristmillError, OSError):
    """A folder that cannot be written, as on a disk that is mounted read-only."""


@contextmanager
def locked(path: Path, what: str, wait: bool = False, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock file `path` while the body runs.

    path: created with its folder where it does not exist.
    what: the artifact partition, as the error names it.
    wait: wait for the holder, for steps that are short; default False.
    shared: hold it together with others that share it, and with nobody else; default False.

    Raises Busy where another process holds it and `wait` is False, NotWritable where the lock file
    cannot be made.
    """
    with _locked(path, what, wait, shared, look=False):
        yield


@contextmanager
def _locked(path: Path, what: str, wait: bool, shared: bool, look: bool) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        refused = NotWritable(
            f"{path}: {error.strerror}: nothing is built, removed or pulled where this user cannot "
            "write; reading and `verify` work"
        )
        refused.errno = error.errno
        raise refused from error
    try:
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            holder = _holder(descriptor)
            raise Busy(f"{what} is already being built by {holder}; this run stops") from None
        with ExitStack() as leases:
            _lease(leases, path, what, wait, look or shared)
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, _signature(), 0)
            yield
    finally:
        os.close(descriptor)


def _lease(leases: ExitStack, path: Path, what: str, wait: bool, only_look: bool) -> None:
    seconds = lease.seconds_for(path.parent)
    if seconds is None:
        return
    try:
        if only_look:
            lease.await_free(path, seconds, wait)
        else:
            leases.enter_context(lease.held(path, seconds, wait))
    except lease.Living as living:
        raise Busy(f"{what} is already being built by {living}; this run stops") from None


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file `path` now; of this host, or by a lease of another."""
    try:
        with _locked(path, path.name, wait=False, shared=False, look=True):
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
