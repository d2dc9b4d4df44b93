"""Files of leases, and what they say of their holder: host, process and start of both."""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = ".leases"
_BYTES: Final = 1024
GONE: Final = (errno.ENOENT, errno.ESTALE)
"""What a file system says of a lease file that a follower removed."""


def content_of(token: str, seconds: float, renewal: int, held: bool) -> bytes:
    """What a lease file of this process says, always of the same length."""
    values = {
        "host": host(),
        "boot": boot(),
        "name": socket.gethostname(),
        "process": os.getpid(),
        "started": start_of(os.getpid()),
        "token": token,
        "seconds": seconds,
        "renewal": renewal,
        "held": held,
    }
    return json.dumps(values).encode().ljust(_BYTES - 1) + b"\n"


def state_of(content: bytes | None) -> dict[str, Any] | None:
    """What a lease file says; None where it is torn, empty or not one."""
    kinds: dict[str, type | tuple[type, ...]] = {"host": str, "boot": str, "name": str}
    kinds |= {"token": str, "process": int, "started": int, "seconds": (int, float), "held": bool}
    try:
        state = json.loads(content or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(state, dict):
        return None
    return state if all(isinstance(state.get(key), kind) for key, kind in kinds.items()) else None


def is_dead_here(state: dict[str, Any]) -> bool:
    """Whether the holder was a process of this host that has ended.

    The caller holds the file lock, which a living one would hold.
    """
    if (state["host"], state["boot"]) != (host(), boot()):
        return False
    return bool(start_of(state["process"]) != state["started"])


def shown(state: dict[str, Any] | None) -> str:
    """The holder, as an error names it."""
    if state is None:
        return "another host"
    return f"process {state['process']} on host {state['name']}"


def folder_of(lock: Path) -> Path:
    """Where the lease files of a lock file are; need not exist."""
    return lock.parent / _FOLDER / lock.name


def name(number: int) -> str:
    """The name of the lease file with a number, from 1."""
    return f"{number:020d}"


def numbers(folder: Path) -> list[int]:
    """The numbers of all lease files of a lock, in no order."""
    try:
        names = [file.name for file in folder.iterdir()]
    except FileNotFoundError:
        return []
    return [int(name) for name in names if name.isascii() and name.isdigit()]


def highest(folder: Path) -> int:
    """The number of the holder; 0 where nobody has held the lock."""
    return max(numbers(folder), default=0)


def read(file: Path) -> bytes:
    """The bytes of a lease file; opened each time, since NFS looks at the server then."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.pread(descriptor, 2 * _BYTES, 0)
    finally:
        os.close(descriptor)


def write(descriptor: int, content: bytes) -> None:
    """Write a lease file from its start, flush and close it; OSError where it is not whole."""
    try:
        if os.pwrite(descriptor, content, 0) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def now() -> float:
    """Seconds since this host started, with those in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _first_line(path: str, otherwise: Callable[[], str]) -> str:
    try:
        return Path(path).read_text().strip() or otherwise()
    except OSError:
        return otherwise()


@cache
def host() -> str:
    """A name that this host alone has, as far as its installation gives one."""
    return _first_line("/etc/machine-id", socket.gethostname)


@cache
def boot() -> str:
    """This start of the kernel, and the space of process numbers: each container has its own."""
    boot = _first_line("/proc/sys/kernel/random/boot_id", lambda: secrets.token_hex(8))
    try:
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return boot


def start_of(process: int) -> int:
    """When a process of this host started, in ticks since boot; 0 where there is none."""
    try:
        # The name in brackets may have spaces and brackets of its own; see proc(5).
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
