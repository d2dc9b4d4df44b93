"""Functions for child processes: each does what hostile input makes a library do."""

import mmap
import os
import resource
import signal
import time
from collections.abc import Iterator
from typing import Any

from gristmill.contract import BadInput

_MAPPED: list[mmap.mmap] = []


def counted(count: int) -> Iterator[Any]:
    for number in range(count):
        yield memoryview(bytes([number]) * 100_000)
        yield {"number": number}


def pid() -> int:
    return os.getpid()


def read_all(descriptor: int, size: int) -> bytes:
    return os.pread(descriptor, size, 0)


def limits() -> list[int]:
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_CORE)
    return [resource.getrlimit(kind)[0] for kind in kinds]


def take_memory(size: int) -> int:
    return len(bytearray(size))


def leave_mapped(size: int) -> None:
    _MAPPED.append(mmap.mmap(-1, size))


def take_time() -> None:
    while True:
        pass


def die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    os.kill(os.getpid(), number)
    time.sleep(10)


def leave() -> None:
    os._exit(7)


def refuse() -> None:
    raise BadInput("file", "breaks a rule", 3)


def fail() -> None:
    raise KeyError("an error of ours")


def wait() -> Iterator[int]:
    yield os.getpid()
    time.sleep(1000)
