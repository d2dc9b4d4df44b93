"""The file of verdicts below the data root: opened, and begun again where it cannot be used.

No check and no build depends on it. Where it is broken, locked or on a full disk, it is removed,
and the work goes on with verdicts in memory. What nobody has looked at since is not checked, and
says so; builds that failed come from events: see `found_again.py`.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from assets.checking.verdicts import Verdicts
from gristmill.data_root.reports import FILE, TABLES
from gristmill.layout import WORK

_WAIT_SECONDS: Final = 30
_SUFFIXES: Final = ("", "-wal", "-shm")
_NEW_COLUMNS: Final = ("warns integer", "since text")
"""Columns of `verdicts` that files of 0.9 do not have."""

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class VerdictFile:
    """The verdicts of a data root, in the file or in memory. `kept` makes and closes it."""

    def __init__(self, root: Path, warn: Callable[[str], object]) -> None:
        self._path, self._warn = root.absolute() / WORK / FILE, warn
        self.is_lost = False
        """Whether the file could not be used, so that these verdicts are in memory."""
        try:
            self._path.parent.mkdir(exist_ok=True)  # a data root that is gone is not made
            connection = self._opened()
        except (OSError, sqlite3.Error) as error:
            connection = self._in_memory(error)
        self._connection = connection
        self.verdicts = Verdicts(root.absolute(), connection)

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
            self._connection = self._in_memory(error)
            self.verdicts = Verdicts(self._path.parent.parent, self._connection)
        return work(self.verdicts)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        try:
            return _prepared(self._path)
        except sqlite3.Error:
            self._remove()
            return _prepared(self._path)

    def _in_memory(self, error: Exception) -> sqlite3.Connection:
        self.is_lost = True
        self._remove()
        self._warn(
            f"what the checks find cannot be kept in {self._path}: {error}. They go on without it; "
            "what was checked before counts as not checked"
        )
        return _prepared(":memory:")

    def _remove(self) -> None:
        for suffix in _SUFFIXES:
            with suppress(OSError):
                self._path.with_name(f"{FILE}{suffix}").unlink(missing_ok=True)


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


def _prepared(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS)
    try:
        # A kill loses nothing, and a commit need not wait for the disk.
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(TABLES)
        if _new_columns(connection):
            with connection:
                connection.execute("begin immediate")
                for column in _new_columns(connection):  # unless another process was first
                    connection.execute(f"alter table verdicts add column {column}")
                    # Each asset is prepared as if the file were new; what is kept stays.
                    connection.execute("delete from assets")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _new_columns(connection: sqlite3.Connection) -> list[str]:
    there = {name for _, name, *_ in connection.execute("pragma table_info(verdicts)")}
    return [each for each in _NEW_COLUMNS if each.split()[0] not in there]
