"""Errors in the words of the user."""

from __future__ import annotations

import errno
import sqlite3
import struct
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.reading.folder import damage_named

NAMES = {7: Path("data/p/a.npy"), 71: Path("data/p/b.npy")}


def raised(error: BaseException) -> BaseException:
    kind = type(error) if isinstance(error, GristmillError) else BadInput
    with (
        pytest.raises(kind) as caught,
        damage_named(lambda: Path("data/p/now"), lambda: NAMES),
    ):
        raise error
    return caught.value


def test_descriptors_become_real_paths() -> None:
    error = raised(BadInput("/proc/self/fd/71/x", "not as /proc/self/fd/7", 3))
    assert isinstance(error, BadInput)
    assert (error.file, error.rule, error.row) == ("data/p/b.npy/x", "not as data/p/a.npy", 3)
    assert str(error) == "data/p/b.npy/x:3: not as data/p/a.npy"
    assert str(raised(GristmillError("/proc/self/fd/8: no"))) == "/proc/self/fd/8: no"


def test_errors_of_the_system_keep_their_reason() -> None:
    error = raised(OSError(errno.EIO, "Input/output error", "/proc/self/fd/7"))
    assert str(error).startswith("data/p/a.npy: cannot be read (Input/output error)")
    assert str(raised(OSError("strange"))).startswith(
        "data/p/now: cannot be read (OSError('strange')"
    )


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), IndexError(), sqlite3.DatabaseError("x"), struct.error("x"), EOFError()],
)
def test_errors_of_libraries_name_the_file_that_was_opened_last(error: Exception) -> None:
    assert str(raised(error)).startswith("data/p/now: cannot be read, it is damaged (")
