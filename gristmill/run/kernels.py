"""Compiled functions, and the one place where their machine code is kept.

`kernel` compiles by numba, and keeps the machine code for the next process: in the folder that
NUMBA_CACHE_DIR names, else in the user's cache folder, else in `cache/` of the data root (see
`fall_back_to`), else nowhere. It never writes beside the code. numba is imported when a kernel is
defined.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import os
import pickle
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

CACHE_DIR: Final = "NUMBA_CACHE_DIR"
"""The variable by which numba, and the processes that this one starts, know the folder."""

_FOLDER = "kernels"
_DAMAGED = (OSError, EOFError, pickle.UnpicklingError, ValueError, AttributeError, ImportError)
_SHARED = stat.S_IWGRP | stat.S_IWOTH
_DIGITS = 16

_threads = threading.RLock()
_held: set[Path] = set()
_under_way: list[object] = []


def kernel(*signature: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Returns a decorator that compiles a function by numba when it is first called.

    signature: at most one, as numba writes it: compiled at once, and no other is.
    options: those of `numba.njit`, without `cache`.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        from numba import njit

        dispatcher = njit(**options)(function)
        if dispatcher is function:
            return function  # NUMBA_DISABLE_JIT: numba compiles nothing
        # numba calls this for each new signature, within its own calls of kernels, too.
        dispatcher.compile = _Compiler(dispatcher)
        for only in signature:
            dispatcher.compile(only)
            dispatcher.disable_compile()
        return dispatcher

    return compiled


def fall_back_to(data_root: Path) -> None:
    """Keep machine code in `cache/` of a data root, if the user has no folder for it.

    It holds for this process and those that it starts later. Where the data root cannot be
    written either, machine code is in memory alone.

    data_root: the folder of drops and artifacts.
    """
    if os.environ.get(CACHE_DIR) or _usable(_user_folder()):
        return
    # Machine code that another user wrote is not executed.
    folder = data_root / "cache" / f"{_FOLDER}-{os.geteuid()}"
    if data_root.is_dir() and _usable(folder):
        os.environ[CACHE_DIR] = str(folder)


def cache_folder() -> Path | None:
    """Returns the folder that holds machine code, which can be written, or None."""
    named = os.environ.get(CACHE_DIR)
    folder = Path(named) if named else _user_folder()
    return folder if _usable(folder) else None


def is_compiling() -> bool:
    """Returns whether this process compiles a kernel now, loads one, or waits for another process.

    It may be called from any thread.
    """
    return bool(_under_way)


def _user_folder() -> Path | None:
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base, "gristmill", _FOLDER)
    try:
        home = Path.home()
    except RuntimeError:
        return None  # a user without a name
    return home / ".cache" / "gristmill" / _FOLDER if home.is_dir() else None


def _usable(folder: Path | None) -> bool:
    """Whether a folder is there or can be made, is ours alone, and can be written."""
    if folder is None or not folder.is_absolute():
        return False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if state.st_uid != os.geteuid() or state.st_mode & _SHARED:
            return False
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class _Compiler:
    """Compiles the signatures of one kernel or loads their machine code, alone among processes."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._compile = dispatcher.compile
        self._lock: Path | None = None
        self._has_looked = False

    def __call__(self, signature: Any) -> Any:
        with _threads:
            _under_way.append(self)
            try:
                return self._machine_code(signature)
            finally:
                _under_way.pop()

    def _machine_code(self, signature: Any) -> Any:
        if not self._has_looked:
            self._has_looked = True
            self._lock = self._enable()
        if self._lock is None:
            return self._compile(signature)
        with _alone(self._lock):
            for _attempt in range(2):
                try:
                    return self._compile(signature)
                except _DAMAGED:
                    # Half a file after a power loss, or a full disk. What was compiled before
                    # the disk was full is in memory, and the next call gives it.
                    _forget(self._dispatcher)
            return self._compile(signature)

    def _enable(self) -> Path | None:
        """Have numba keep the machine code; the lock file of this kernel, or None."""
        from numba.core import config

        settings: Any = config
        base, function = cache_folder(), self._dispatcher.py_func
        if base is None:
            return None
        folder = base / _key(Path(inspect.getfile(function)).parent)
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            self._dispatcher.enable_caching()
        except RuntimeError:
            return None  # the disk became full, or the folder was taken away
        finally:
            settings.CACHE_DIR = before
        name = f"{function.__module__}.{function.__qualname__}"
        return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}.lock"


def _forget(dispatcher: Any) -> None:
    """Remove the files of a kernel."""
    function = dispatcher.py_func
    name = function.__qualname__.replace("<", "").replace(">", "")
    stem = f"{Path(inspect.getfile(function)).stem}.{name}-"
    for file in Path(dispatcher.stats.cache_path).glob("*"):
        if file.name.startswith(stem):
            with suppress(OSError):
                file.unlink()


@cache
def _key(package: Path) -> str:
    """A name by the sources that a kernel is made of, Python, numba and the processor.

    numba itself looks at the file of the called function alone, though it compiles into it the
    functions that it calls and the constants that it uses: those of its folder, and of the formats,
    rules and domains of its family, which is one level above the folder or two.
    """
    import llvmlite
    import numba
    from llvmlite import binding

    digest = hashlib.sha256()
    for part in (
        sys.version,
        numba.__version__,
        llvmlite.__version__,
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
    ):
        digest.update(part.encode() + b"\0")
    above = package.parents[:2]
    rooms = [family / name for family in above for name in ("format", "rules", "domains")]
    for folder in (package, *rooms):
        for source in sorted(folder.glob("*.py")):
            digest.update(f"{folder.name}/{source.name}\0".encode())
            digest.update(hashlib.sha256(source.read_bytes()).digest())
    return f"{package.name}-{digest.hexdigest()[:_DIGITS]}"


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock file; numba would let two processes overwrite one another's machine code."""
    if lock in _held:
        yield
        return
    descriptor = None
    with suppress(OSError):  # a file system without locks
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    _held.add(lock)
    try:
        yield
    finally:
        _held.discard(lock)
        if descriptor is not None:
            os.close(descriptor)
