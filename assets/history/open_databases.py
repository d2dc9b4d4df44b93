"""The databases of an instance on SQLite, held open between the events of a run.

Dagster opens and closes a database for each event. Whoever closes it last copies its write-ahead
log back and deletes it, and waits for the disk several times more than the commit itself. While one
connection is open in any process, nobody is the last.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

_lock = threading.Lock()
_instance: dict[Path, sqlite3.Connection] = {}
_run: dict[Path, sqlite3.Connection] = {}


def hold(instance: dg.DagsterInstance, run_id: str | None = None) -> None:
    """Hold the databases of an instance open until the process ends, or holds another one.

    instance: the Dagster instance; nothing is done for one on another storage than SQLite.
    run_id: the run whose own database is held, too; default none.
    A database that cannot be opened is not held: Dagster says what is wrong with it.
    """
    path_of = getattr(instance.event_log_storage, "path_for_shard", None)
    if path_of is None:
        return
    index = Path(path_of("index"))
    history = index.parent.parent  # at the top of a disk, a folder is its own parent
    with _lock:
        _replace(_instance, [index, history / "runs.db", history.parent / "schedules/schedules.db"])
        if run_id is not None:
            _replace(_run, [Path(path_of(run_id))])


def _replace(held: dict[Path, sqlite3.Connection], paths: Sequence[Path]) -> None:
    """Hold some databases in place of those before: tests and batches see many."""
    if all(path in held for path in paths):
        return
    for connection in held.values():
        connection.close()
    held.clear()
    for path in paths:
        if (opened := _opened(path)) is not None:
            held[path] = opened


def _opened(path: Path) -> sqlite3.Connection | None:
    try:
        # Any thread closes it; none but this module uses it. It never makes a file.
        connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, check_same_thread=False)
    except sqlite3.Error:
        return None
    try:
        # The log is open, and counts as in use, once something was read.
        connection.execute("pragma schema_version").fetchall()
    except sqlite3.Error:
        connection.close()
        return None
    return connection
