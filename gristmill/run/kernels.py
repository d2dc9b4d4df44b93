"""Compiled functions, and the one place where their machine code is kept.

`kernel` compiles by numba, and keeps the machine code for the next process: in the folder that
NUMBA_CACHE_DIR names, else in the user's cache folder, else in `cache/` of the data root (see
`fall_back_to`), else nowhere. It never writes beside the code. All checkouts of a user share it:
`kernel_key` says which kernels are the same. `kernels.zip` beside this module has what numba keeps
of the kernels of a release, compiled for x86-64-v3, which most processors since 2015 are; an entry
of other code, Python, numba or NumPy is never found, and `make kernels` makes the archive. numba is
imported when a kernel is defined.
"""

from __future__ import annotations

import fcntl
import hashlib
import lzma
import opcode
import os
import pickle
import platform
import stat
import sys
import tempfile
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, cast

_VERSIONED: Final = {*sys.stdlib_module_names, "numba", "numpy", "llvmlite"}
"""Packages of which the key holds the version, and whose code it need not hold."""
_PLAIN: Final = (int, float, complex, str, bytes, type(None), type(...))
_IMPORT: Final = opcode.opmap["IMPORT_NAME"]
_SETTINGS: Final = ("NUMBA_OPT", "NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO", "NUMBA_SLP_VECTORIZE")
"""Variables by which numba compiles the same code to something else."""


class NoKey(Exception):
    """A kernel uses a value of which nobody can say whether it is the same in another process."""


def kernel_key(dispatcher: Any, processor: tuple[str, str] | None = None) -> str:
    """The hex sha256 of all that decides the machine code of a kernel, but for its signature.

    processor: name and features of the one that it is compiled for, as numba writes them; None
        (default): the one that this process compiles for.

    Raises NoKey where a value that it uses is none that this module knows.
    """
    digest = hashlib.sha256()
    for part in (*_surroundings(processor), *_Walk(dispatcher).parts()):
        digest.update(b"%d %b" % (len(part), part))
    return digest.hexdigest()


@cache
def _surroundings(processor: tuple[str, str] | None = None) -> tuple[bytes, ...]:
    """What the compiler is, what it compiles for, and how it is set."""
    import llvmlite
    import numba
    import numpy
    from llvmlite import binding

    # The bytecode is part of the key, so a patch release of Python changes nothing by itself.
    python = f"{sys.implementation.cache_tag} {sys.abiflags}"
    versions = (python, numba.__version__, llvmlite.__version__, numpy.__version__)
    config: Any = numba.config
    if processor is None and config.CPU_NAME is not None:
        processor = (config.CPU_NAME, config.CPU_FEATURES or "")
    if processor is None:
        processor = (binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    settings = (os.environ.get(name, "") for name in _SETTINGS)
    return tuple(part.encode() for part in (*versions, *processor, *settings))


class _Walk:
    """Everything that a kernel reaches, each function once, in the order of its names."""

    def __init__(self, dispatcher: Any) -> None:
        self._waiting: deque[Any] = deque([dispatcher])
        # The values are held, since the id of one that is gone is given to another.
        self._found: dict[int, tuple[int, Any]] = {id(dispatcher): (0, dispatcher)}

    def parts(self) -> Iterator[bytes]:
        while self._waiting:
            value = self._waiting.popleft()
            yield f"{value.__module__}.{value.__qualname__}".encode()
            if hasattr(value, "targetoptions"):
                yield repr(sorted(value.targetoptions.items())).encode()
            # A dispatcher, an intrinsic, a function.
            function = getattr(value, "py_func", None) or getattr(value, "_defn", value)
            for cell in function.__closure__ or ():
                yield from self._value(cell.cell_contents, ())
            yield from self._value(function.__defaults__, ())
            constants = function.__code__.co_consts
            if function.__doc__ is not None:  # the first constant, which nobody executes
                constants = (None, *constants[1:])
            code = function.__code__.replace(co_consts=constants)
            yield from self._code(code, function.__globals__)

    def _code(self, code: CodeType, names: dict[str, Any]) -> Iterator[bytes]:
        if _IMPORT in code.co_code[::2]:
            raise NoKey(f"{code.co_qualname} imports within the function")
        yield code.co_code
        yield code.co_exceptiontable
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from self._code(constant, names)
            else:
                yield from self._value(constant, ())
        for name in code.co_names:
            yield name.encode()
            if name in names:
                yield from self._value(names[name], code.co_names)

    def _value(self, value: Any, attributes: tuple[str, ...]) -> Iterator[bytes]:
        """What a value is. attributes: the names that may be looked for in a module."""
        if isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}".encode()
        elif isinstance(value, tuple | list):
            yield f"{type(value).__name__} {len(value)}".encode()
            for item in value:
                yield from self._value(item, attributes)
        elif isinstance(value, frozenset):
            yield repr(sorted(map(repr, value))).encode()
        elif isinstance(value, ModuleType):
            yield value.__name__.encode()
            if not _is_versioned(value.__name__):
                for name in attributes:
                    yield from self._value(getattr(value, name, None), attributes)
        else:
            yield from self._named(value)

    def _named(self, value: Any) -> Iterator[bytes]:
        import numpy
        from numba import types

        module = str(getattr(value, "__module__", "") or type(value).__module__)
        if isinstance(value, numpy.ndarray | numpy.generic) and not value.dtype.hasobject:
            yield f"{value.dtype.descr} {value.shape} {value.strides}".encode()
            yield value.tobytes()
        elif isinstance(value, types.Type):
            yield repr(value).encode()
        elif _is_versioned(module) and hasattr(value, "__name__"):
            yield f"{module}.{getattr(value, '__qualname__', value.__name__)}".encode()
        elif isinstance(value, FunctionType) or hasattr(value, "py_func") or _is_intrinsic(value):
            if id(value) not in self._found:
                self._found[id(value)] = (len(self._found), value)
                self._waiting.append(value)
            yield b"function %d" % self._found[id(value)][0]
        else:
            raise NoKey(f"{value!r} of {module}")


def _is_versioned(module: str) -> bool:
    return module.partition(".")[0] in _VERSIONED


def _is_intrinsic(value: Any) -> bool:
    from numba.core.extending import _Intrinsic

    return isinstance(value, _Intrinsic)


ARCHIVE: Final = Path(__file__).with_name("kernels.zip")

PROCESSOR: Final = ("x86-64-v3", "")
_FEATURES: Final = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_NAMED: Final = 32
_NOT_THERE: Final = (
    KeyError, OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError, RuntimeError,
)  # fmt: skip
"""What reading an entry raises that is not there, or of a damaged archive; RuntimeError also is
NotImplementedError, of a method that a damaged entry names."""


def find_shipped(dispatcher: Any, signature: Any) -> Any:
    """What numba kept of a kernel for a signature, as it takes it; None where it is not shipped."""
    if not _runs_here():
        return None
    name = entry(kernel_key(dispatcher, PROCESSOR), signature)
    try:
        with zipfile.ZipFile(ARCHIVE) as archive:
            # The archive's checksum is compared; it is as trusted as the code.
            return pickle.loads(archive.read(name))
    except _NOT_THERE:
        return None


@cache
def _runs_here() -> bool:
    """Whether this process compiles for a machine that runs the archive's code."""
    import numba
    from llvmlite import binding

    features, config = binding.get_host_cpu_features(), cast(Any, numba.config)
    return (
        sys.platform == "linux"
        and platform.machine() == "x86_64"
        and config.CPU_NAME is None
        and all(features.get(name) for name in _FEATURES)
    )


def entry(key: str, signature: Any) -> str:
    """The name of an archive's entry, from the first digits of the key of a kernel at least."""
    return f"{key[:_NAMED]}/{hashlib.sha256(str(signature).encode()).hexdigest()[:_NAMED]}"


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
                    # The lock file stays, which other processes may wait for.
                    for file in self._lock.parent.glob(f"*-{self._lock.stem}.*"):
                        with suppress(OSError):
                            file.unlink()
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
            if found is None and (shipped := find_shipped(dispatcher, signature)):
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
