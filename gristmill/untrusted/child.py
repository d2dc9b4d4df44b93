"""Runs a function in a child process with limits, so that hostile input harms the child alone.

Libraries in C++ decide how much memory a file takes before Python can look at it, and a crash in
one of them ends the process. A child has a limit on its address space and on its CPU time, and its
death becomes BadInput. What may be opened at all: `files.py`. Source:
`docs/drops.md#child-processes`.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from gristmill.contract import BadInput, GristmillError
from gristmill.untrusted.child_main import (
    BYTES,
    ERROR,
    FRAME,
    HEADER,
    MEMORY,
    OBJECT,
    RECEIVED,
    ChildFailed,
    Request,
    receive,
)
from gristmill.untrusted.limits import LIMITS

__all__ = ["ChildDied", "ChildFailed", "OverLimit", "run", "stream"]

_MAIN: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from gristmill.untrusted.child_main import serve; serve(int(sys.argv[1]))"
)
_IDLE_CHILDREN: Final = 2
_MORE_SECONDS: Final = 60.0
_CLOCK: Final = 6
"""CPU time is counted by the kernel; on the clock a loaded machine may take so much longer."""
_CRASHES: Final = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
_QUIET: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
"""Each thread of a library takes address space, which is what the limit counts."""


class OverLimit(BadInput):
    """A file takes more memory or time than its child may take, or crashes the library."""


class ChildDied(GristmillError):
    """A child was ended from outside, so nothing is known about the file that it read."""


def run(
    function: Callable[..., Any],
    *arguments: Any,
    file: Path,
    memory_bytes: int = LIMITS.memory_bytes,
    seconds: float = LIMITS.seconds,
    descriptors: Sequence[int] = (),
) -> Any:
    """Return the result of `function(*descriptors, *arguments)`, computed in a child process.

    The arguments are those of `stream`; the result must pickle. Raises what `stream` raises.
    """
    (result,) = stream(
        _as_list,
        function,
        *arguments,
        file=file,
        memory_bytes=memory_bytes,
        seconds=seconds,
        descriptors=descriptors,
    )
    return result


def stream(
    function: Callable[..., Iterable[Any]],
    *arguments: Any,
    file: Path,
    memory_bytes: int = LIMITS.memory_bytes,
    seconds: float = LIMITS.seconds,
    descriptors: Sequence[int] = (),
) -> Generator[Any]:
    """Yield what `function(*descriptors, *arguments)` yields in a child process, in order.

    function: of a module, found by its name. It yields objects that pickle, or memoryviews,
        which arrive as bytearrays without a copy more.
    arguments: must pickle.
    memory_bytes: address space that the call may take beside what the child has at its
        beginning, default 2 GiB.
    seconds: for the whole call, default 600: of CPU time, and on the clock between two items.
    descriptors: of open files. The child has its own copies, with the same position.

    The child runs ahead by what a socket buffers. Children are used again, and end
    when this process does.

    Raises OverLimit naming `file` if the child takes too much memory or time or crashes,
    ChildDied if it was killed, the GristmillError that `function` raises, and ChildFailed
    for any other error of it.
    """
    request = Request(function, arguments, memory_bytes, max(1, int(seconds)))
    child = _Child.with_request(pickle.dumps(request), descriptors)
    finished = False
    try:
        child.wait_at_most(max(seconds, min(_CLOCK * seconds, LIMITS.seconds)) + _MORE_SECONDS)
        while (frame := child.frame()) is not None:
            kind, payload = frame
            if kind == BYTES:
                yield payload
                continue
            if kind == OBJECT:
                yield pickle.loads(payload)
                continue
            if kind == MEMORY:
                raise _out_of_memory(file, request)
            finished = True
            if kind == ERROR:
                raise pickle.loads(payload)
            return
        raise _death(child.returncode(), file, request)
    except TimeoutError as error:
        raise _out_of_time(file, request) from error
    finally:
        if finished:
            child.keep()
        else:
            child.end()


def _as_list(*arguments: Any) -> Iterator[Any]:
    """Call the function among the arguments: it is after the descriptors."""
    place = next(at for at, argument in enumerate(arguments) if callable(argument))
    yield arguments[place](*arguments[:place], *arguments[place + 1 :])


def _out_of_memory(file: Path, request: Request) -> OverLimit:
    return OverLimit(file, f"takes more than {request.memory_bytes >> 20:,} MiB of memory to read")


def _out_of_time(file: Path, request: Request) -> OverLimit:
    return OverLimit(file, f"takes more than {request.seconds:,} seconds to read")


def _death(code: int, file: Path, request: Request) -> GristmillError:
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"status {code}"
    if name == "SIGXCPU":
        return _out_of_time(file, request)
    if name in _CRASHES:
        return OverLimit(
            file, f"crashes the library that reads it ({name}): write it again with another program"
        )
    return ChildDied(f"{file}: the process that read it was ended ({name}): start again")


class _Child:
    _idle: Final[list[_Child]] = []
    _lock = Lock()

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", _MAIN, str(theirs.fileno()), *sys.path]
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | _QUIET,
            )

    @classmethod
    def with_request(cls, request: bytes, descriptors: Sequence[int]) -> _Child:
        """Return a child that has received the request: an idle one, or a new one."""
        while True:
            with cls._lock:
                child = cls._idle.pop() if cls._idle else None
            is_new = child is None
            child = child or _Child()
            has_request = False
            try:
                has_request = child._send(request, descriptors)
            finally:
                if not has_request:
                    child.end()
            if has_request:
                return child
            # An idle child may have been killed; a new one has no reason to be gone.
            if is_new:
                raise ChildDied("a process that reads untrusted files did not start: start again")

    def _send(self, request: bytes, descriptors: Sequence[int]) -> bool:
        """Send a request; return whether the child has it."""
        try:
            header = HEADER.pack(len(request))
            socket.send_fds(self._socket, [header], descriptors)
            self._socket.sendall(request)
            frame = self.frame()
        except OSError:
            return False
        return frame is not None and frame[0] == RECEIVED

    def wait_at_most(self, seconds: float) -> None:
        """Let `frame` raise TimeoutError if nothing comes for this time."""
        self._socket.settimeout(seconds)

    def frame(self) -> tuple[bytes, bytearray] | None:
        """Return kind and payload of the next frame, None if the child is dead."""
        header = receive(self._socket, FRAME.size)
        if header is None:
            return None
        kind, size = FRAME.unpack(header)
        payload = receive(self._socket, size)
        return None if payload is None else (kind, payload)

    def keep(self) -> None:
        """Let the child wait for the next request."""
        self._socket.settimeout(None)
        with self._lock:
            if len(self._idle) < _IDLE_CHILDREN:
                self._idle.append(self)
                return
        self.end()

    def end(self) -> None:
        """End the child, whatever it does."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    @classmethod
    def end_idle(cls) -> None:
        """End the children that wait."""
        while cls._idle:
            cls._idle.pop().end()

    def returncode(self) -> int:
        """Wait for a dying child and return its exit status."""
        return self._process.wait()


atexit.register(_Child.end_idle)
os.register_at_fork(after_in_child=_Child._idle.clear)
