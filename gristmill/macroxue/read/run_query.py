"""SQL over the table `runs` of a pack, which can only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from gristmill.contract import BadInput
from gristmill.reading.folder import HeldFile

# The connection is read-only, but ATTACH could still write to another file.
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


# Of a database file: 2 in both bytes means a write-ahead log, which a copy in memory cannot have.
_JOURNAL = slice(18, 20)


def first_column(database: HeldFile, sql: str, params: Sequence[Any] = ()) -> set[Any]:
    """The different values in the first column of a query.

    database: metadata.db of a pack or pool. It is queried as a copy in memory, because SQLite
        opens files by their path, which may lead to a rebuilt pack.

    Raises sqlite3.DatabaseError for any other statement, and for an error in the query;
    OverflowError for a number of more than 64 bits with its sign; BadInput for a damaged database.
    """
    with database.reading() as path:
        octets = bytearray(path.read_bytes())
    octets[_JOURNAL] = b"\1\1"
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(bytes(octets))
        db.set_authorizer(_authorize)
        try:
            return {row[0] for row in db.execute(sql, params)}
        except OverflowError as error:
            raise OverflowError(
                f"a parameter of {sql!r} is no signed number of 64 bits: a seed of 2**63 or more "
                "is in the table as seed - 2**64"
            ) from error
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in _DAMAGED:
                raise
            rule = f"SQLite cannot read it ({error}): build the pack again, or copy it again"
            raise BadInput(database.path, rule) from error
