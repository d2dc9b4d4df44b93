"""A key for the machine code of a kernel: all that numba compiles into it, and nothing else.

numba itself looks at the file of the called function alone, at its path and time, though it
compiles into it the functions that it calls and the constants that it uses, from any module. Here
these are followed as numba follows them, by name, so that equal code has equal machine code in
every checkout. `kernels.py` keeps the machine code.
"""

from __future__ import annotations

import hashlib
import opcode
import os
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

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
