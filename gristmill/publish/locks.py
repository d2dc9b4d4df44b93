"""Locks between builders: one builder an artifact, known by name to the others.

The kernel releases a lock when its holder dies, so none is ever left behind.
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
def held(path: Path, what: str, wait: bool = False) -> Iterator[None]:
    """Hold the lock file `path` while the body runs.

    what: what the lock stands for, in the words of the error.
    wait: wait for the holder, for steps that are short; else raise Busy, which
        names the holder's process, machine and start.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise Busy(f"{what} is being built by {_holder(descriptor)}: this one stops") from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, _signature(), 0)
        yield
    finally:
        os.close(descriptor)


def _signature() -> bytes:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps(
        {"process": os.getpid(), "host": socket.gethostname(), "since": started}
    ).encode()


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['process']} on {holder['host']} since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "another builder"  # it holds the lock, but has not signed yet
