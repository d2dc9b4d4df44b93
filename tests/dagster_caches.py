"""What Dagster makes for each connection is made once in a process: a third of many tests.

For each SQLite file Dagster reads its 90 migration scripts, and for each statement it makes an
engine, which compiles the statement again, and a connection, which reads the schema again. They are
kept, the connections until the test ends or the file is another. An instance in memory keeps a
connection, too, whose pragmas are set once. The three databases of a new instance begin as copies
of those that Dagster has made once, with all tables. And SQLite does not wait for the disk, which
only the loss of power could show. The schema of `dagster.yaml`, the same for each instance, is
kept, too. What the steps of a run print is shown after them, not by four processes.

`python -m tests.dagster_caches WORDS` is `gristmill WORDS` with them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.execution import compute_logs
from dagster._core.instance import config as instance_config
from dagster._core.storage.event_log import in_memory as events_in_memory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs import in_memory as runs_in_memory
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

_ENGINES = 64
_OPENERS: tuple[Any, ...] = (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage)


@cache
def install() -> None:
    """Let this process read migration scripts once, and keep the latest engines."""
    _begin_with_tables(_new_databases())
    for module in _OPENERS:
        module.create_engine = _kept(module.create_engine)
    in_memory: tuple[Any, ...] = (events_in_memory, runs_in_memory)
    for module in in_memory:
        module.create_engine = _in_memory(module.create_engine)
    events: Any = events_in_memory.InMemoryEventLogStorage
    events._connect = _event_connection
    runs: Any = runs_in_memory.InMemoryRunStorage
    runs.connect = _run_connection
    directories: dict[str | None, ScriptDirectory] = {}
    read = ScriptDirectory.from_config

    def from_config(config: Config) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in directories:
            directories[place] = read(config)
        return directories[place]

    ScriptDirectory.from_config = from_config  # type: ignore[method-assign,assignment]
    compute_logs.execute_posix_tail = _shown_afterwards  # type: ignore[assignment]
    schema = instance_config.dagster_instance_config_schema
    instance_config.dagster_instance_config_schema = cache(schema)


def _new_databases() -> dict[str, bytes]:
    """The bytes of each database of a new instance, by its name."""
    with TemporaryDirectory() as folder:
        DagsterSqliteStorage.from_local(folder)
        return {file.name: file.read_bytes() for file in Path(folder).rglob("*.db")}


def _begin_with_tables(new: dict[str, bytes]) -> None:
    """Let Dagster find its tables in databases that it opens for the first time."""
    events: Any = sqlite_event_log.SqliteEventLogStorage
    make_tables = events._initdb

    def initdb(self: Any, engine: Engine, for_index_shard: bool = False) -> None:
        if for_index_shard:
            _begin(str(engine.url.database), new["index.db"])
        make_tables(self, engine, for_index_shard)

    events._initdb = initdb
    storages: dict[str, Any] = {
        "runs.db": sqlite_run_storage.SqliteRunStorage,
        "schedules.db": sqlite_schedule_storage.SqliteScheduleStorage,
    }
    for name, storage in storages.items():
        storage.from_local = _from_local(storage.from_local, name, new[name])


def _from_local(make: Callable[..., Any], name: str, content: bytes) -> Callable[..., Any]:
    def from_local(base_dir: str, inst_data: Any = None) -> Any:
        _begin(f"{base_dir}/{name}", content)
        return make(base_dir, inst_data)

    return from_local


def _begin(database: str, content: bytes) -> None:
    """Write a database, unless it or its log is there, or another process begins it."""
    file = Path(database)
    if file.exists() or Path(f"{database}-wal").exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=file.parent) as whole:
        whole.write(content)
        whole.flush()
        with suppress(FileExistsError):
            os.link(whole.name, file)


def _in_memory(create: Callable[..., Engine]) -> Callable[..., Engine]:
    """Keep a connection beside the one that Dagster holds so that the database stays."""

    def engine(url: str, **options: Any) -> Engine:
        pool = {"poolclass": QueuePool, "pool_size": 2, "max_overflow": -1}
        to_connect = {"connect_args": {"check_same_thread": False}}
        made = create(url, **options | pool | to_connect)
        event.listen(made, "connect", _mind_foreign_keys)
        return made

    return engine


def _mind_foreign_keys(connection: Any, _: object) -> None:
    connection.execute("pragma foreign_keys = on")


@contextmanager
def _event_connection(storage: Any) -> Iterator[Connection]:
    """A connection to the events in memory, one at a time."""
    with storage._db_lock, storage._engine.begin() as connection:
        yield connection


@contextmanager
def _run_connection(storage: Any) -> Iterator[Connection]:
    """A connection to the runs in memory."""
    with storage._engine.begin() as connection:
        yield connection


@contextmanager
def _shown_afterwards(path: str, stream: Any) -> Iterator[tuple[None, None]]:
    """Copy what was written into a log to the stream it was taken from, once all is there."""
    try:
        yield None, None
    finally:
        shown = compute_logs._fileno(stream)  # type: ignore[no-untyped-call]
        os.write(1 if shown is None else shown, Path(path).read_bytes())


keeps_connections = True
"""Whether engines that are made from now on keep a connection."""

_connected: dict[int, Engine] = {}


def release() -> None:
    """Close the connections that are kept; SQLite then puts the log of a database into its file."""
    while _connected:
        Engine.dispose(_connected.popitem()[1])


def _kept(create: Callable[..., Engine]) -> Callable[..., Engine]:
    """Keep an engine for each file, and a connection that nobody uses at the time."""
    engines: dict[tuple[str, str], Engine] = {}

    def engine(url: str, **options: Any) -> Engine:
        key = url, repr(sorted(options.items()))
        if key not in engines:
            if len(engines) == _ENGINES:
                del engines[next(iter(engines))]
            engines[key] = _with_connections(create, url, options)
        return engines[key]

    return engine


def _with_connections(create: Callable[..., Engine], url: str, options: dict[str, Any]) -> Engine:
    """An engine that keeps a connection, until the file in its place is another or none."""
    file = make_url(url).database
    if not keeps_connections or not file or file == ":memory:":
        made = create(url, **options)
        event.listen(made, "connect", _wait_for_no_disk)
        return made
    to_connect = options.get("connect_args", {}) | {"check_same_thread": False}
    pool = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": -1}
    made = create(url, **options | pool | {"connect_args": to_connect})
    # Dagster disposes of some engines after each statement.
    made.dispose = lambda close=True: None  # type: ignore[method-assign]

    def begin(connection: Any, record: Any) -> None:
        _wait_for_no_disk(connection, record)
        record.info["file"] = _identity(file)
        _connected[id(made)] = made

    def is_same(_: Any, record: Any, __: Any) -> None:
        if record.info["file"] != _identity(file):
            raise DisconnectionError(f"{file} is another file")

    event.listen(made, "connect", begin)
    event.listen(made, "checkout", is_same)
    return made


def _identity(file: str) -> tuple[int, int] | None:
    """Device and inode of a file; None where there is none."""
    try:
        found = Path(file).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _wait_for_no_disk(connection: Any, _: object) -> None:
    connection.execute("pragma synchronous = off")


if __name__ == "__main__":
    from gristmill.cli import main
    from tests.report_day import working_as_asked

    install()
    with working_as_asked():
        main()
