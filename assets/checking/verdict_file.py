"""The file of verdicts, `.gristmill/verdicts.db` below the data root: opened, lost, found again.

No check and no build depends on the file. Where it is broken, locked, or on a full disk, the work
goes on with verdicts in memory, and the loss is noted, so that the next who opens the file takes
what the UI shows and what events say: see `found_again.py`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from assets.checking.verdicts import TABLES, Verdicts
from gristmill.layout import WORK

FILE: Final = "verdicts.db"
LOST: Final = "verdicts.lost"
"""Beside the file: some verdicts could not be written into it."""

_WAIT_SECONDS: Final = 30
_SUFFIXES: Final = ("", "-wal", "-shm")
# Of errors with other numbers the file itself is the cause: it is no database, or one of others.
_PASSING: Final = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_AUTH,
}

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class VerdictFile:
    """The verdicts of a data root, in the file or in memory. `kept` makes and closes it."""

    def __init__(self, root: Path, warn: Callable[[str], object]) -> None:
        self._root, self._warn = root.absolute(), warn
        self.is_lost = False
        """Whether the file could not be used, so that these verdicts are in memory."""
        self._connection: sqlite3.Connection
        try:
            self._connection = _connected(self._root / WORK / FILE)
        except (OSError, sqlite3.Error) as error:
            self._lose(error)
        self.verdicts = Verdicts(self._root, self._connection)

    def do(self, work: Callable[[Verdicts], Result]) -> Result:
        """Returns what `work` returns; called again with empty verdicts if the file fails.

        What it does besides must bear a second call.
        """
        try:
            return work(self.verdicts)
        except sqlite3.Error as error:
            if self.is_lost:
                raise  # of a database in memory
            self._connection.close()
            self._lose(error)
            self.verdicts = Verdicts(self._root, self._connection)
        return work(self.verdicts)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _lose(self, error: Exception) -> None:
        self.is_lost = True
        note_loss(self._root, error)
        self._connection = _prepared(":memory:")
        self._warn(
            f"what the checks find cannot be kept in {self._root / WORK / FILE}: {error}. They go "
            "on without it, from what the UI shows and events say"
        )


@contextmanager
def kept(root: Path, warn: Callable[[str], object] = log.warning) -> Iterator[VerdictFile]:
    """Open the verdicts of a data root; arguments as of `VerdictFile`."""
    file = VerdictFile(root, warn)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def opened(root: Path) -> Iterator[Verdicts]:
    """Open the verdicts of a data root, for what is done at once."""
    with kept(root) as file:
        yield file.verdicts


def note_loss(root: Path, error: Exception) -> None:
    """Note that verdicts could not be written, so that the file is no longer trusted.

    A file that is broken is removed; so is one beside which nothing can be noted.
    """
    folder = root.absolute() / WORK
    if not _is_of_the_file(error):
        with suppress(OSError):
            (folder / LOST).touch()
            return
    for suffix in _SUFFIXES:
        with suppress(OSError):
            (folder / f"{FILE}{suffix}").unlink(missing_ok=True)


def _is_of_the_file(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    # The lowest byte is the error, the others are details.
    return code is not None and code & 0xFF not in _PASSING


def _connected(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(exist_ok=True)  # a data root that is gone is not made
    try:
        connection = _prepared(path)
    except sqlite3.Error as error:
        if not _is_of_the_file(error):
            raise
        note_loss(path.parent.parent, error)
        connection = _prepared(path)
    lost = path.with_name(LOST)
    if os.path.lexists(lost):
        try:
            with connection:
                # Each asset is prepared as if the file were new; what is kept stays.
                connection.execute("delete from assets")
                lost.unlink(missing_ok=True)
        except sqlite3.Error:
            connection.close()
            raise
    return connection


def _prepared(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS)
    try:
        # A kill loses nothing, and a commit need not wait for the disk.
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(TABLES)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
