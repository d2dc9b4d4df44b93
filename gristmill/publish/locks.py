"""Locks between builders: one builder for each artifact partition; an error names the holder.

The kernel releases a lock when its holder dies, so no lock outlives its builder.
Lock files stay: removing one would race with a builder that just opened it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from gristmill.contract import GristmillError


class Busy(GristmillError):
    """Another builder is at work on the same artifact partition."""


@contextmanager
def locked(path: Path, what: str, wait: bool = False, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock file `path` while the body runs.

    path: created with its folder where it does not exist.
    what: the artifact partition, as the error names it.
    wait: wait for the holder, for steps that are short; default False.
    shared: hold it together with others that share it, and with nobody else; default False.

    Raises Busy where another process holds it and `wait` is False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            holder = _holder(descriptor)
            raise Busy(f"{what} is already being built by {holder}; this run stops") from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, _signature(), 0)
        yield
    finally:
        os.close(descriptor)


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
