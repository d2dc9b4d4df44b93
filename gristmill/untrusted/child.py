"""Reads an untrusted file in a child process with a bound on memory and time.

For formats whose parser is foreign compiled code, such as Parquet: such a parser may take
any amount of memory for a small file, or crash.
"""

from __future__ import annotations

import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Generator, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from gristmill.contract import BadInput, GristmillError
from gristmill.run.workers import Context, die_with
from gristmill.untrusted.limits import LIMITS

Result = TypeVar("Result")

_ITEM, _END, _ERROR, _MEMORY = range(4)
_LEAST_BYTES = 64 << 20
_MEMORY_SIGNALS = {signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS}


class ChildFailed(GristmillError):
    """An error in a child process that is no GristmillError; the text has its traceback."""


def run(
    function: Callable[..., Result],
    *args: Any,
    file: Path,
    memory_bytes: int = LIMITS.memory_bytes,
    seconds: float = LIMITS.seconds,
) -> Result:
    """The result of `function(*args)`, computed in a child process.

    function: of a module that the child can import; arguments and result must pickle.
    file: that the function reads, for errors.
    memory_bytes: that the function may take beside what its modules take; default 2 GiB.
    seconds: for the call, in processor time of the child and on the clock; default 10 minutes.

    Raises BadInput naming the file if the child runs out of memory or time or crashes, the
    GristmillError that the function raises, and ChildFailed for any other error of it.
    """
    result: Result = next(_results(function, args, False, file, memory_bytes, seconds))
    return result


def stream(
    function: Callable[..., Iterable[Result]],
    *args: Any,
    file: Path,
    memory_bytes: int = LIMITS.memory_bytes,
    seconds: float = LIMITS.seconds,
) -> Generator[Result]:
    """The items that `function(*args)` yields in a child process, in order.

    seconds: for each item. The other arguments and the errors as for `run`.

    The child is at most a pipe's buffer ahead, and is killed when the generator is closed.
    """
    yield from _results(function, args, True, file, memory_bytes, seconds)


def _results(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    many: bool,
    file: Path,
    memory_bytes: int,
    seconds: float,
) -> Generator[Any]:
    context = Context()
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(
        target=_serve,
        args=(sending, os.getpid(), many, memory_bytes, seconds, function, args),
        name=f"reads {Path(file).name}",
    )
    try:
        process.start()
        sending.close()
        while True:
            if not receiving.poll(seconds + _start_seconds()):
                raise BadInput(file, f"takes more than {seconds:g} seconds to read")
            try:
                kind, value = receiving.recv()
            except (EOFError, OSError):
                process.join()
                raise _death(file, process.exitcode or 0, memory_bytes, seconds) from None
            if kind == _ITEM:
                yield value
            elif kind == _END:
                return
            elif kind == _MEMORY:
                raise _too_much_memory(file, memory_bytes)
            else:
                raise value
    finally:
        receiving.close()
        if process.pid is not None:
            process.kill()
            process.join()


def _start_seconds() -> float:
    """Seconds that the start of a process may take on a loaded machine."""
    return 60.0


def _too_much_memory(file: Path, memory_bytes: int) -> BadInput:
    return BadInput(
        file,
        f"takes more than {memory_bytes / 2**20:,.0f} MiB of memory to read: it looks like a "
        "decompression bomb",
    )


def _death(file: Path, code: int, memory_bytes: int, seconds: float) -> BadInput:
    if code == -signal.SIGXCPU:
        return BadInput(file, f"takes more than {seconds:g} seconds to read")
    if -code in _MEMORY_SIGNALS:
        return BadInput(
            file,
            f"cannot be read: its parser crashed (signal {-code}), or memory ran out (limit "
            f"{memory_bytes / 2**20:,.0f} MiB)",
        )
    return BadInput(file, f"cannot be read: the process that reads it ended with status {code}")


def _serve(
    connection: Connection,
    parent: int,
    many: bool,
    memory_bytes: int,
    seconds: float,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    """What the child does. The function's modules are loaded: unpickling it imported them."""
    die_with(parent)
    # A crash is reported by the parent; a core file of untrusted bytes helps nobody.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, _address_space() + max(memory_bytes, _LEAST_BYTES))
    try:
        _grant(seconds)
        if many:
            for item in function(*args):
                connection.send((_ITEM, item))
                _grant(seconds)
        else:
            connection.send((_ITEM, function(*args)))
        connection.send((_END, None))
    except MemoryError:
        connection.send((_MEMORY, None))
    except GristmillError as error:
        connection.send((_ERROR, error))
    except Exception as error:  # noqa: BLE001  any error goes to the parent
        reason = "".join(traceback.format_exception(error))
        connection.send((_ERROR, ChildFailed(reason)))


def _grant(seconds: float) -> None:
    """Allow this many more seconds of processor time."""
    _limit(resource.RLIMIT_CPU, int(time.process_time() + seconds) + 1)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
