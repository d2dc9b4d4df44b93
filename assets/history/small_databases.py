"""The database of a run, in pages of 1 KiB: it has 25 tables and indexes, most of them empty.

Dagster makes one for each run, and SQLite gives each table a page of 4 KiB. A database keeps the
size of the pages that it was made with.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from typing import Final

PAGE_BYTES: Final = 1024
_OF_A_RUN: Final = re.compile(r"/runs/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.db\Z")


@cache
def install() -> None:
    """Let this process make the databases of runs with small pages, whatever opens them."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", _begin)


def _begin(connection: object, _: object) -> None:
    """Choose the size of pages; in a database that is there it changes nothing."""
    if isinstance(connection, sqlite3.Connection):
        _, _, name = connection.execute("pragma database_list").fetchone()
        if _OF_A_RUN.search(name or ""):
            connection.execute(f"pragma page_size = {PAGE_BYTES}")
