"""The process of a run: its identity in the tags of the run, its garbage collector, its databases.

Dagster stores each event in transactions of its own, and waits for the disk each time: with
`stored_together` and `tune_databases` it does so less often.

Dagster's launcher on one machine has no health check: a run whose process was killed together with
the machine stays STARTED. `gristmill prune`, and the launcher of `commands/serving/launcher.py`,
compare the tag with the processes that live.
"""

from __future__ import annotations

import gc
import json
import os
import re
import socket
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import dagster as dg

TAG = ".dagster/gristmill_worker"
"""Dagster's pages hide tags with the prefix `.dagster/`: nobody filters runs by this one."""
CLUSTER = ".dagster/gristmill_ray"
"""The tag of a run on a Ray cluster: the Ray job. Its process may be on another machine."""

# Seconds by which a process may seem to start after an event that it wrote: the clock's steps.
_CLOCK_STEP = 2.0


@cache
def freeze_imports() -> None:
    """Exclude all objects that exist at the first call from garbage collection.

    The objects that Dagster imported and set up for a run live as long as its process, and
    walking over them costs a small run as much as its own work. Later calls do nothing, since
    freezing also keeps what is garbage at that moment.
    """
    gc.freeze()


def sign(context: dg.AssetExecutionContext) -> None:
    """Write the identity of this process into the tags of the run, unless it is there already."""
    signature = identity(os.getpid())
    if signature is not None and context.run.tags.get(TAG) != signature:
        context.instance.add_run_tags(context.run.run_id, {TAG: signature})


def identity(process: int) -> str | None:
    """Returns boot id, process id and start time of a living process; None if there is none.

    The start time, in clock ticks since the boot, distinguishes a process from a later one with
    the same id. The boot id is cut to eight digits.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        # The command name in parentheses may contain spaces; the fields follow it.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state == "Z" else f"{boot}:{process}:{started}"


def is_alive(signature: str) -> bool:
    """Returns whether the process of a signature still runs on this machine."""
    _, process, _ = signature.split(":")
    return identity(int(process)) == signature


def is_running(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool | None:
    """Returns whether the process of a run lives on this machine; None if it has named none."""
    if signature := run.tags.get(TAG):
        return is_alive(signature)
    for event in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        data = event.dagster_event.engine_event_data if event.dagster_event else None
        named = data.metadata.get("pid") if data else None
        if named is not None:
            return was_there(int(str(named.value)), event.timestamp)
    return None


def was_there(process: int, timestamp: float) -> bool:
    """Returns whether a process lives that was there at a time; a later one may have its id."""
    signature = identity(process)
    if signature is None:
        return False
    ticks = int(signature.rpartition(":")[2])
    return _booted() + ticks / os.sysconf("SC_CLK_TCK") <= timestamp + _CLOCK_STEP


def _booted() -> float:
    """When the machine started, in seconds since 1970."""
    lines = Path("/proc/stat").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("btime ")))


def answers(server: str) -> bool:
    """Returns whether a code server accepts connections.

    server: the value of a run's tag `.dagster/grpc_info`, a JSON object.
    """
    info = json.loads(server)
    try:
        if path := info.get("socket"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
        else:
            socket.create_connection((info["host"], info["port"]), timeout=2).close()
    except OSError:
        return False
    return True


_lock = threading.Lock()
_instance: dict[Path, sqlite3.Connection] = {}
_run: dict[Path, sqlite3.Connection] = {}


def hold_databases(instance: dg.DagsterInstance, run_id: str | None = None) -> None:
    """Hold the SQLite databases of an instance open until the process ends, or holds another one.

    run_id: the run whose own database is held, too; default none. A database that cannot be opened
        is not held: Dagster says what is wrong with it.
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


_TOGETHER: Final = (
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    dg.DagsterEventType.ASSET_OBSERVATION,
)
_MOST_WAITING, _MOST_SECONDS = 100, 1.0
# Names of Dagster's storage in SQLite; one without them stores each event at once.
_NEEDED: Final = (
    *("path_for_shard", "run_connection", "index_transaction", "prepare_insert_event"),
    *("_store_asset_event_tags", "_store_asset_event"),
)


@contextmanager
def stored_together(instance: dg.DagsterInstance) -> Iterator[None]:
    """Store the events of assets that this block reports together, where Dagster is on SQLite.

    All events keep their order. The first that waits is stored with the next that comes after a
    second, and at the end of the block. A process that is killed loses those that wait, as it does
    between a publication and its event: the next call reports what it finds published.
    """
    storage: Any = instance.event_log_storage
    if "store_event" in vars(storage) or not all(hasattr(storage, name) for name in _NEEDED):
        yield
        return
    waiting: list[Any] = []
    store_at_once, lock = storage.store_event, threading.RLock()

    def store_waiting() -> None:
        some = waiting[:]
        waiting.clear()
        if some:
            store_events(storage, some)

    def store(event: Any) -> None:
        with lock:
            is_other = waiting and event.run_id != waiting[0].run_id
            if is_other or event.dagster_event_type not in _TOGETHER:
                store_waiting()
            if event.dagster_event_type not in _TOGETHER:
                store_at_once(event)
                return
            waiting.append(event)
            waited = event.timestamp - waiting[0].timestamp
            if len(waiting) == _MOST_WAITING or waited >= _MOST_SECONDS:
                store_waiting()

    storage.store_event = store
    try:
        yield
    finally:
        with lock:
            del storage.store_event
            store_waiting()


def store_events(storage: Any, events: Sequence[Any]) -> None:
    """Store events of assets as Dagster's `store_event` on SQLite does, in one transaction a file.

    events: `EventLogEntry` of one run.
    """
    inserts = [storage.prepare_insert_event(event) for event in events]
    with storage.run_connection(events[0].run_id) as log:
        for insert in inserts:
            log.execute(insert)
    with storage.index_transaction() as index:
        ids = [index.execute(insert).inserted_primary_key[0] for insert in inserts]
        storage._store_asset_event_tags(index, events, ids)
        # Each event of an asset replaces what the one before of its kind said.
        last = {
            (event.dagster_event.asset_key, event.dagster_event_type): (event, number)
            for event, number in zip(events, ids, strict=True)
        }
        for event, number in sorted(last.values(), key=lambda each: each[1]):
            storage._store_asset_event(index, event, number)


PAGE_BYTES: Final = 1024
_FULL: Final = 2  # SQLite's number for a flush after each transaction
_OF_A_RUN: Final = re.compile(r"/runs/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.db\Z")


@cache
def tune_databases() -> None:
    """Let this process make the databases of runs with small pages, and wait less for the disk.

    A transaction in a write-ahead log is flushed with those that follow. A loss of power can take
    the last of them; the database stays whole. The death of a process takes none.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", _tune)


def _tune(connection: object, _: object) -> None:
    """Choose the size of pages, which changes nothing in a database that is there, and flushes."""
    if not isinstance(connection, sqlite3.Connection):
        return
    _, _, name = connection.execute("pragma database_list").fetchone()
    if _OF_A_RUN.search(name or ""):
        connection.execute(f"pragma page_size = {PAGE_BYTES}")
    read = "select journal_mode, synchronous from pragma_journal_mode, pragma_synchronous"
    if name and connection.execute(read).fetchone() == ("wal", _FULL):
        connection.execute("pragma synchronous = normal")
