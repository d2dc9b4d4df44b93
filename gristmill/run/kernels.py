"""Compiled functions, and the one place where their machine code is kept.

`kernel` compiles by numba, and keeps the machine code for the next process: in the folder that
NUMBA_CACHE_DIR names, else in the user's cache folder, else in `cache/` of the data root (see
`fall_back_to`), else nowhere. It never writes beside the code. All checkouts of a user share it:
`kernel_key.py` says which kernels are the same; those of a release come with the package
(`shipped_kernels.py`). numba is imported when a kernel is defined.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from gristmill.run import shipped_kernels
from gristmill.run.kernel_key import NoKey, kernel_key

CACHE_DIR: Final = "NUMBA_CACHE_DIR"
"""The variable by which numba, and the processes that this one starts, know the folder."""

_FOLDER = "kernels"
_DAMAGED = (OSError, EOFError, pickle.UnpicklingError, ValueError, AttributeError, ImportError)
_SHARED = stat.S_IWGRP | stat.S_IWOTH
_DIGITS = 32

_threads = threading.RLock()
_held: set[Path] = set()


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
        dispatcher._compilation_chain_init_hook = _load_no_plug_ins
        for only in signature:
            dispatcher.compile(only)
            dispatcher.disable_compile()
        return dispatcher

    return compiled


def fall_back_to(data_root: Path) -> None:
    """Keep machine code in `cache/` of a data root, if the user has no folder for it.

    It holds for this process and those that it starts later. Where the data root cannot be written
    either, machine code is in memory alone.
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
        from numba.core import entrypoints

        with _threads:
            # Code of others that is compiled later loads them.
            loads, entrypoints._already_initialized = entrypoints._already_initialized, True
            try:
                return self._machine_code(signature)
            finally:
                entrypoints._already_initialized = loads

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
                    _forget(self._lock)
            return self._compile(signature)

    def _enable(self) -> Path | None:
        """Have numba keep the machine code; the lock file of this kernel, or None."""
        folder = cache_folder()
        if folder is None:
            return None
        try:
            place = _Place(folder, kernel_key(self._dispatcher))
        except NoKey:
            return None
        self._dispatcher._cache = _cache_of(self._dispatcher, place)
        return folder / f"{place.key}.lock"


def _cache_of(dispatcher: Any, place: _Place) -> Any:
    """numba's own cache, but for the place of its files, and with what is shipped behind it."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    class _Kept(CompileResultCacheImpl):
        _locator_classes: Any = (place,)

    class _KeptCache(FunctionCache):
        _impl_class = _Kept

        def _load_overload(self, signature: Any, context: Any) -> Any:
            found: Any = super()._load_overload(signature, context)  # type: ignore[no-untyped-call]
            if found is None and (shipped := shipped_kernels.find(dispatcher, signature)):
                found = self._impl.rebuild(context, shipped)
            return found

    return _KeptCache(dispatcher.py_func)  # type: ignore[no-untyped-call]


class _Place:
    """Where numba keeps the files of one kernel, and what they are kept by."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self.key = key[:_DIGITS]

    def from_function(self, _function: object, file: str) -> _Place:
        self._py_file = file  # numba names it in warnings
        return self

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self.key

    def get_disambiguator(self) -> str:
        return self.key


def _load_no_plug_ins() -> None:
    """Numba's plug-ins, as awkward's, are half of the time to load a kernel, which uses none."""


def _forget(lock: Path) -> None:
    """Remove the files of a kernel, but for its lock, which other processes may wait for."""
    for file in lock.parent.glob(f"*-{lock.stem}.*"):
        with suppress(OSError):
            file.unlink()


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
