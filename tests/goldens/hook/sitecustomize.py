"""Notes what a process executes of a package: see `tests/goldens/traced.py`."""

import inspect
import os
import sys
import threading
from types import CodeType, FrameType

_SEEN: set[CodeType] = set()


def _note(frame: FrameType, event: str, _argument: object) -> None:
    code = frame.f_code
    if event != "call" or code in _SEEN:
        return
    _SEEN.add(code)
    # The body of a class or module runs when it is imported, whoever uses it.
    is_function = code.co_flags & inspect.CO_OPTIMIZED
    if is_function and code.co_filename.startswith(os.environ["TRACED_FOLDER"]):
        descriptor = os.open(os.environ["TRACED_FILE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{code.co_filename}:{code.co_qualname}\n".encode())
        os.close(descriptor)


def begin() -> None:
    """Note from here on, in this thread and in those that it starts."""
    threading.setprofile(_note)
    sys.setprofile(_note)


def end() -> None:
    """Note nothing more."""
    threading.setprofile(None)
    sys.setprofile(None)


if "TRACED_FILE" in os.environ:
    begin()
