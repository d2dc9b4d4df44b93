"""Errors of readers in the words of the user: real paths, and no foreign exceptions."""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gristmill.contract import BadInput, GristmillError

DESCRIPTORS = Path("/proc/self/fd")

_NAMED = re.compile(rf"{DESCRIPTORS}/(\d+)")
_REMEDY = "build it again, or copy it again"
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    sqlite3.Error,
    struct.error,
)
"""What libraries raise on damaged files."""


def _renamed(text: str, names: Mapping[int, Path]) -> str:
    def name(match: re.Match[str]) -> str:
        return str(names.get(int(match[1]), match[0]))

    return _NAMED.sub(name, text)


def _rename(error: GristmillError, names: Mapping[int, Path]) -> None:
    error.args = tuple(_renamed(a, names) if isinstance(a, str) else a for a in error.args)
    if isinstance(error, BadInput):
        error.file, error.rule = _renamed(error.file, names), _renamed(error.rule, names)


@contextmanager
def damage_named(
    where: Callable[[], Path], names: Callable[[], Mapping[int, Path]]
) -> Iterator[None]:
    """Raise every error of reading files as a GristmillError that names the real file."""
    try:
        yield
    except GristmillError as error:
        _rename(error, names())
        raise
    except OSError as error:
        file = _renamed(str(error.filename), names()) if error.filename else str(where())
        rule = f"cannot be read ({error.strerror or repr(error)}): {_REMEDY}"
        raise BadInput(file, rule) from error
    except _DAMAGE as error:
        text = _renamed(repr(error), names())
        raise BadInput(where(), f"cannot be read, it is damaged ({text}): {_REMEDY}") from error
