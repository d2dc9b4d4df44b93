"""What a child process does: it waits for requests and answers them with frames."""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from threading import Thread
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.untrusted.limits import LIMITS

HEADER: Final = struct.Struct("<Q")
"""The length of a request."""
FRAME: Final = struct.Struct("<cQ")
"""Kind and length of an answer."""
RECEIVED, BYTES, OBJECT, END, ERROR, MEMORY = b"R", b"B", b"O", b"E", b"X", b"M"


class ChildFailed(GristmillError):
    """An error in a child process that is no GristmillError; the text has its traceback."""


@dataclass(frozen=True)
class Request:
    """One call: `function(*descriptors, *arguments)` within the limits."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    memory_bytes: int
    seconds: int


def receive(end: socket.socket, size: int) -> bytearray | None:
    """Return so many bytes, or None if the other end closed before."""
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        try:
            count = end.recv_into(view[at:], size - at)
        except ConnectionError:
            count = 0
        if not count:
            return None
        at += count
    return data


class _NoPandas(MetaPathFinder):
    """Hides pandas: where it is installed, Arrow gives its times, and a row would depend on it."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def serve(number: int) -> None:
    """Answer requests until the other end closes: the main function of a child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    sys.meta_path.insert(0, _NoPandas())
    end, first = socket.socket(fileno=number), _address_space()
    Thread(target=_leave_with, args=[end], daemon=True).start()
    # What requests leave mapped, as libraries, is not the next one's; a child that has much, ends.
    while _address_space() - first < LIMITS.memory_bytes:
        header, descriptors, _, _ = socket.recv_fds(end, HEADER.size, 16)
        if len(header) < HEADER.size:
            return
        request = receive(end, HEADER.unpack(header)[0])
        if request is None:
            return
        _send_frame(end, RECEIVED)
        try:
            _answer(end, request, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _leave_with(end: socket.socket) -> None:
    """End this process when the parent is gone.

    The kernel's signal at the parent's death would come when the parent's thread ends, and a child
    is used by several threads.
    """
    poll = select.poll()
    poll.register(end, 0)  # a hang-up is reported without being asked for
    poll.poll()
    os._exit(0)


def _answer(end: socket.socket, octets: bytearray, descriptors: Sequence[int]) -> None:
    answer: tuple[bytes, Any] = (END, b"")
    try:
        request = pickle.loads(octets)
        memory = _address_space() + request.memory_bytes
        seconds = int(time.process_time()) + 1 + request.seconds
        # A core file of untrusted bytes helps nobody.
        limits = {resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
        for kind, wanted in limits.items():
            most = resource.getrlimit(kind)[1]
            allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.setrlimit(kind, (allowed, most))
        for item in request.function(*descriptors, *request.arguments):
            if isinstance(item, memoryview):
                _send_frame(end, BYTES, item)
            else:
                _send_frame(end, OBJECT, pickle.dumps(item))
    except MemoryError:
        answer = (MEMORY, b"")
    except GristmillError as error:
        answer = (ERROR, pickle.dumps(error))
    except Exception as error:  # noqa: BLE001  every error goes to the parent
        reason = "".join(traceback.format_exception(error))
        answer = (ERROR, pickle.dumps(ChildFailed(reason)))
    _send_frame(end, *answer)


def _address_space() -> int:
    """Bytes of address space that are mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _send_frame(end: socket.socket, kind: bytes, payload: Any = b"") -> None:
    view = memoryview(payload).cast("B")
    end.sendall(FRAME.pack(kind, len(view)))
    end.sendall(view)
