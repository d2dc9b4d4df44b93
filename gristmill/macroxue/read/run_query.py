"""SQL over the table `runs` of a pack, which can only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

# The connection is read-only, but ATTACH could still write to another file.
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def first_column(database: Path, sql: str, params: Sequence[Any] = ()) -> set[Any]:
    """The different values in the first column of a query.

    database: metadata.db of a pack or pool.
    sql: one SELECT statement.
    params: values of its placeholders.

    Raises sqlite3.DatabaseError for any other statement, and for an error in the query.
    """
    uri = f"{database.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        db.set_authorizer(_authorize)
        return {row[0] for row in db.execute(sql, params)}
