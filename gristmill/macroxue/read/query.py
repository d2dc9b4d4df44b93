"""Runs of a pack by a query over its metadata.db, which the query can only read.

See also `dataset.py`, whose datasets ask so.

Source: `docs/formats/macroxue.md#runs-table`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.contract import BadInput
from gristmill.macroxue.read.splits import RunIds

# ATTACH could write to another file.
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# Of a database file: 2 in both bytes means a write-ahead log, which a copy in memory cannot have.
_JOURNAL = slice(18, 20)


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def queried(
    octets: bytes, path: Path, known: Container[int], sql: str, params: Sequence[Any] = ()
) -> RunIds:
    """The run ids in the first column of a query as uint32 [R], ascending, each once.

    octets: of metadata.db. It is queried as a copy in memory, because SQLite opens files by their
        path, which may lead to a rebuilt pack. path: of the file, for errors.
    known: the ids of the runs.
    sql, params: one SELECT, and the values of its placeholders.

    Raises sqlite3.DatabaseError for any other statement, and for an error in the query;
    OverflowError for a number of more than 64 bits with its sign; ValueError for a value that is
    no run id; BadInput for a damaged database.
    """
    copy = bytearray(octets)
    copy[_JOURNAL] = b"\1\1"
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(bytes(copy))
        db.set_authorizer(_authorize)
        try:
            ids = {row[0] for row in db.execute(sql, params)}
        except OverflowError as error:
            raise OverflowError(
                f"a parameter of {sql!r} is no signed number of 64 bits: a seed of 2**63 or more "
                "is in the table as seed - 2**64"
            ) from error
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in _DAMAGED:
                raise
            rule = f"SQLite cannot read it ({error}): build the pack again, or copy it again"
            raise BadInput(path, rule) from error
    if unknown := [value for value in ids if value not in known]:
        raise ValueError(f"the query gives {unknown[0]!r}, which is not the id of a run")
    return np.array(sorted(ids), np.uint32)
