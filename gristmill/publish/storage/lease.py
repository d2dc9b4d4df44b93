"""Leases: locks that hold between hosts, beside the file locks that hold on one.

Each holder has a file of its own, `.leases/<lock>/<number>`, and the highest number is the holder.
It is made with O_EXCL, so one of several takers wins, and rewritten in place by its holder alone,
so that a renewal needs no room and overwrites no taker's file. That of the highest number is never
removed.

A waiter saw the same bytes for the whole lease and a third more; a holder counts from before its
last renewal, so it stops earlier than anyone may follow it. Each goes by its own CLOCK_BOOTTIME,
which also counts while a machine sleeps. Source: docs/publishing-details.md#locks-between-hosts.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.publish.storage import file_system, lease_file

VARIABLE: Final = "GRISTMILL_LEASE_SECONDS"
DEFAULT_SECONDS: Final = 60.0
_LEAST_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 3600.0
_POLL_SECONDS: Final = (0.1, 0.5)
"""The least and the most between two looks of a waiter: a listing and a read of one file."""
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "afs", "gfs2", "ocfs2"}
    | {"fuse.glusterfs", "fuse.sshfs", "fuse.juicefs", "fuse.ceph"}
)
"""File systems that several hosts may mount, by the kind that /proc/self/mountinfo names."""


class LostLease(GristmillError):
    """Another may have the lock by now: its lease was not renewed, or its file was removed."""


class Living(GristmillError):
    """Another host holds the lease; its text names the holder."""


_devices: dict[int, bool] = {}
_mine = threading.local()


def seconds_for(folder: Path) -> float | None:
    """Seconds of the leases of locks in `folder`, None where file locks are enough.

    Raises GristmillError where the variable GRISTMILL_LEASE_SECONDS is neither 0, which switches
    leases off, nor a number from 1 to 3,600. Without it a network file system has leases.
    """
    chosen = os.environ.get(VARIABLE, "").strip()
    if chosen:
        try:
            seconds = float(chosen)
        except ValueError:
            seconds = -1.0
        if seconds == 0:
            return None
        if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
            raise GristmillError(f"{VARIABLE}={chosen}: must be 0, or seconds from 1 to 3,600")
        return seconds
    device = folder.stat().st_dev
    if device not in _devices:
        mount = file_system.mount(folder)
        _devices[device] = mount is not None and mount.kind in NETWORK
    return DEFAULT_SECONDS if _devices[device] else None


def takeover_seconds(seconds: float) -> float:
    """How long a lease of `seconds` must stand without renewal before another host follows."""
    return seconds * 4 / 3


@contextmanager
def held(lock: Path, seconds: float) -> Iterator[None]:
    """Hold the lease of a lock file while the body runs; the caller holds the file lock.

    seconds: of the lease.

    Raises Living where another host holds it: after its next renewal. It is followed at once after
    its release, and after `takeover_seconds` where it is dead.
    """
    folder = lease_file.folder_of(lock)
    folder.mkdir(parents=True, exist_ok=True)
    lease = None
    while lease is None:
        lease = _Lease.claimed(folder, _number_to_follow(folder, seconds) + 1, seconds)
    leases = _of_thread()
    leases.append(lease)
    try:
        lease.begin()
        yield
    finally:
        leases.remove(lease)
        lease.end()


def await_free(lock: Path, seconds: float) -> None:
    """Return once no other host holds the lease; raises Living as `held` does."""
    _number_to_follow(lease_file.folder_of(lock), seconds)


@contextmanager
def of_file(descriptor: int, lock: Path) -> Iterator[None]:
    """Let `confirm` compare a lock file, whose lock the caller holds, with its path in the body."""
    _of_thread()
    held = (descriptor, lock)
    _mine.files.append(held)
    try:
        yield
    finally:
        _mine.files.remove(held)


def is_at(descriptor: int, lock: Path) -> bool:
    """Whether an open lock file is the one that others find at its path."""
    try:
        there = lock.stat()
    except OSError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def confirm() -> None:
    """Renew and read back all leases that this thread holds: the step before a commit.

    Raises LostLease where one is not certainly held, or where a lock file that this thread holds is
    not at its path any more; nothing may be committed then.
    """
    for lease in _of_thread():
        lease.confirm()
    for descriptor, lock in _mine.files:
        if not is_at(descriptor, lock):
            raise LostLease(
                f"{lock}: somebody removed this lock file while its holder was at work, so that "
                "another may have the lock: nothing is published; call the command again"
            )


def is_lost() -> bool:
    """Whether a lease of this thread is lost: what its lock guards belongs to another then."""
    try:
        confirm()
    except LostLease:
        return True
    return False


def own_name(name: str) -> str:
    """A name that no earlier or later holder of this thread's leases uses; `name` without any."""
    leases = _of_thread()
    return f"{name}@{leases[0].token}" if leases else name


def _of_thread() -> list[_Lease]:
    """The leases of this thread; a forked process has no lease or lock file of its parent's."""
    if getattr(_mine, "process", None) != os.getpid():
        _mine.process, _mine.leases, _mine.files = os.getpid(), [], []
    found: list[_Lease] = _mine.leases
    return found


class _Lease:
    """One lease that this process holds, and the thread that renews it."""

    def __init__(self, folder: Path, number: int, seconds: float) -> None:
        self.token = secrets.token_hex(8)
        self._folder, self._number, self._seconds = folder, number, seconds
        self._file = folder / lease_file.name(number)
        self._renewal = 0
        self._good = lease_file.now()
        self._is_lost = False
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew_often, daemon=True, name="lease")

    @classmethod
    def claimed(cls, folder: Path, number: int, seconds: float) -> _Lease | None:
        """The lease with a number, None where another taker was first."""
        lease = cls(folder, number, seconds)
        try:
            descriptor = os.open(lease._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return None
        try:
            lease_file.write(descriptor, lease._content())
        except BaseException:
            lease._file.unlink(missing_ok=True)
            raise
        if lease_file.highest(folder) != number:
            lease._file.unlink(missing_ok=True)
            return None
        for older in lease_file.numbers(folder):
            if older < number:
                with suppress(OSError):
                    (folder / lease_file.name(older)).unlink()
        return lease

    def begin(self) -> None:
        self._renewer.start()

    def end(self) -> None:
        """Release. Where that cannot be written, the lease runs out by itself."""
        self._ended.set()
        with self._guard:
            if not self._is_lost:
                with suppress(OSError):
                    self._rewrite(held=False)

    def confirm(self) -> None:
        self._renew()
        with self._guard:
            content = None
            with suppress(OSError):
                content = lease_file.read(self._file)
            state = lease_file.state_of(content)
            if (
                self._is_lost
                or lease_file.now() - self._good >= self._seconds
                or state is None
                or state["token"] != self.token
            ):
                self._is_lost = True
                raise LostLease(
                    f"{self._file.parent}: the lease was not renewed for {self._seconds:g} s, or "
                    "another host took it over: nothing is published; call the command again"
                )

    def _renew_often(self) -> None:
        while not self._is_lost and not self._ended.wait(self._seconds / 3):
            self._renew()

    def _renew(self) -> None:
        with self._guard:
            began = lease_file.now()
            if self._is_lost or self._ended.is_set():
                return
            try:
                # A lease that ran out is never renewed: a taker may be about to claim it.
                self._is_lost = began - self._good >= self._seconds
                if not self._is_lost:
                    self._rewrite(held=True)
                    ran_out = lease_file.now() - self._good >= self._seconds
                    self._is_lost = ran_out or lease_file.highest(self._folder) != self._number
            except OSError as error:
                self._is_lost = error.errno in lease_file.GONE
                return  # a disk may come back before the lease runs out
            if not self._is_lost:
                self._good = began

    def _rewrite(self, held: bool) -> None:
        self._renewal += 1
        lease_file.write(os.open(self._file, os.O_WRONLY), self._content(held))

    def _content(self, held: bool = True) -> bytes:
        return lease_file.content_of(self.token, self._seconds, self._renewal, held)


def _number_to_follow(folder: Path, seconds: float) -> int:
    """The highest number, once its holder released it, died on this host or ran out."""
    seen: tuple[int, bytes] | None = None
    since = 0.0
    while number := lease_file.highest(folder):
        try:
            content = lease_file.read(folder / lease_file.name(number))
        except OSError as error:
            if error.errno not in lease_file.GONE:
                raise
            content = b""  # a taker has just removed it
        state = lease_file.state_of(content)
        if state is not None and (not state["held"] or lease_file.is_dead_here(state)):
            return number
        if seen != (number, content):
            if seen is not None:
                raise Living(lease_file.shown(state))
            seen, since = (number, content), lease_file.now()
        elif lease_file.now() - since >= takeover_seconds(_seconds_of(state, seconds)):
            return number
        time.sleep(_pause(seconds))
    return 0


def _pause(seconds: float) -> float:
    """Seconds between two looks; random, so that waiters look at different times."""
    least, most = _POLL_SECONDS
    return min(random.uniform(least, most), seconds / 20)


def _seconds_of(state: dict[str, Any] | None, own: float) -> float:
    """The longer of two hosts' settings; what no host may set counts as nothing."""
    said = 0.0 if state is None else state["seconds"]
    return max(own, said) if said <= _MOST_SECONDS else own
