"""What Dagster makes for each connection is made once in a process: a third of many tests.

For each SQLite file Dagster reads its 90 migration scripts, and for each connection it makes an
engine, which compiles each statement again. Neither holds a connection or any state of a test. And
SQLite does not wait for the disk, which only the loss of power could show.

`python -m tests.dagster_caches WORDS` is `gristmill WORDS` with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy import event

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


def _kept(create: Callable[..., Any]) -> Callable[..., Any]:
    """Keep an engine for each file; without a pool it holds no connection."""
    engines: dict[tuple[str, str], Any] = {}

    def engine(url: str, **options: Any) -> Any:
        key = url, repr(sorted(options.items()))
        if key not in engines:
            if len(engines) == _ENGINES:
                del engines[next(iter(engines))]
            engines[key] = create(url, **options)
            event.listen(engines[key], "connect", _wait_for_no_disk)
        return engines[key]

    return engine


def _wait_for_no_disk(connection: Any, _: object) -> None:
    connection.execute("pragma synchronous = off")


if __name__ == "__main__":
    from gristmill.cli import main

    install()
    main()
