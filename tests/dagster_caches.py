"""What Dagster makes for each connection is made once in a process: a third of many tests.

For each SQLite file Dagster reads its 90 migration scripts, and for each statement it makes an
engine, which compiles the statement again, and a connection, which reads the schema again. They are
kept, the connections until the test ends or the file is another. And SQLite does not wait for the
disk, which only the loss of power could show. The schema of `dagster.yaml`, the same for each
instance, is kept, too. What the steps of a run print is shown after them, not by four processes.

`python -m tests.dagster_caches WORDS` is `gristmill WORDS` with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.execution import compute_logs
from dagster._core.instance import config as instance_config
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy import event
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

_ENGINES = 64
_OPENERS: tuple[Any, ...] = (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage)


@cache
def install() -> None:
    """Let this process read migration scripts once, and keep the latest engines."""
    for module in _OPENERS:
        module.create_engine = _kept(module.create_engine)
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

    install()
    main()
