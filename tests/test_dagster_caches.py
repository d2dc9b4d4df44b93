"""The connections that Dagster's storages keep in tests: for how long, and to which file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance
from dagster._core.execution import compute_logs
from dagster._core.instance import config as instance_config
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from sqlalchemy import text
from sqlalchemy.pool import NullPool

from tests import dagster_caches


@pytest.fixture
def file(tmp_path: Path) -> Path:
    dagster_caches.install()
    return tmp_path / "index.db"


def _engine(file: Path) -> Any:
    return sqlite_event_log.create_engine(f"sqlite:///{file}", poolclass=NullPool)


def _run(file: Path, statement: str) -> list[Any]:
    """Run a statement as Dagster does, which disposes of the engine afterwards."""
    engine = _engine(file)
    with engine.connect() as connection, connection.begin():
        done = connection.execute(text(statement))
        rows = [tuple(row) for row in done] if done.returns_rows else []
    engine.dispose()
    return rows


def _log(file: Path) -> Path:
    return file.with_name("index.db-wal")


def test_a_connection_is_kept_until_it_is_released(file: Path) -> None:
    _run(file, "pragma journal_mode = wal")
    _run(file, "create table numbers (number)")
    assert _log(file).exists()
    dagster_caches.release()
    assert not _log(file).exists()
    _run(file, "insert into numbers values (7)")
    assert _run(file, "select number from numbers") == [(7,)]


def test_another_file_in_the_place_of_the_first_is_read(file: Path) -> None:
    other = file.with_name("other.db")
    for each in (file, other):
        _run(each, "create table names (name)")
        _run(each, f"insert into names values ('{each.stem}')")
    other.rename(file)
    assert _run(file, "select name from names") == [("other",)]


def test_a_file_that_was_removed_is_begun_again(file: Path) -> None:
    _run(file, "create table numbers (number)")
    file.unlink()
    assert _run(file, "select name from sqlite_master") == []


def test_a_statement_that_fails_leaves_no_change_behind(file: Path) -> None:
    _run(file, "create table numbers (number)")
    with pytest.raises(RuntimeError), _engine(file).connect() as connection, connection.begin():
        connection.execute(text("insert into numbers values (7)"))
        raise RuntimeError
    assert _run(file, "select number from numbers") == []


def test_an_engine_can_keep_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dagster_caches, "keeps_connections", False)
    _run(file, "pragma journal_mode = wal")
    _run(file, "create table numbers (number)")
    assert not _log(file).exists()


def test_what_a_step_prints_is_shown_after_it_and_the_log_has_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dagster_caches.install()
    with (tmp_path / "shown").open("w+") as stream:
        with compute_logs.mirror_stream_to_file(stream, str(tmp_path / "log")):
            os.write(stream.fileno(), b"printed\n")
            assert (tmp_path / "shown").read_text() == ""
        assert (tmp_path / "shown").read_text() == (tmp_path / "log").read_text() == "printed\n"
    with compute_logs.mirror_stream_to_file(StringIO(), str(tmp_path / "log")):
        pass
    assert capfd.readouterr().out == "printed\n"  # as of a stream without a file


def test_the_schema_of_an_instance_is_made_once() -> None:
    dagster_caches.install()
    schema = instance_config.dagster_instance_config_schema
    assert schema() is schema()


def _made(folder: Path) -> dict[str, list[Any]]:
    """What the databases of a new instance hold, by their names, but for times."""
    storage = DagsterSqliteStorage.from_local(str(folder))
    with storage.event_log_storage.run_connection("run"):  # type: ignore[attr-defined]
        pass
    dagster_caches.release()
    made = {}
    for file in folder.rglob("*.db"):
        with closing(sqlite3.connect(file)) as opened:
            tables = opened.execute("select name, sql from sqlite_master order by name").fetchall()
            rows: list[Any] = [opened.execute("pragma journal_mode").fetchall()]
            for name in ("alembic_version", "secondary_indexes", "runs", "event_logs"):
                if name in dict(tables):
                    found = opened.execute(f"select * from {name}").fetchall()
                    rows.append([name, *(row[:2] for row in found)])
            made[file.name] = [*tables, *rows]
    return made


def test_a_new_database_holds_what_dagster_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dagster_caches.install()
    copied = _made(tmp_path / "copied")
    assert sorted(copied) == ["index.db", "run.db", "runs.db", "schedules.db"]
    monkeypatch.setattr(dagster_caches, "_begin", lambda *_: None)
    assert copied == _made(tmp_path / "made")


def test_a_database_that_is_there_or_has_a_log_is_not_begun(tmp_path: Path) -> None:
    file = tmp_path / "folder/one.db"
    dagster_caches._begin(str(file), b"new")
    dagster_caches._begin(str(file), b"newer")
    assert [each.name for each in file.parent.iterdir()] == ["one.db"]
    assert file.read_bytes() == b"new"
    file.rename(f"{file}-wal")
    dagster_caches._begin(str(file), b"new")
    assert not file.exists()


def test_an_instance_in_memory_keeps_a_connection() -> None:
    dagster_caches.install()
    with DagsterInstance.ephemeral() as instance:
        storages: Any = instance.event_log_storage, instance.run_storage
        for connect in (storages[0].index_connection, storages[1].connect):
            used = set()
            for _ in range(3):
                with connect() as connection:
                    used.add(id(connection.connection.dbapi_connection))
                    assert connection.execute(text("pragma foreign_keys")).scalar() == 1
            assert len(used) == 1
        with pytest.raises(RuntimeError), storages[1].connect() as connection:
            connection.execute(text("insert into kvs (key, value) values ('a', 'b')"))
            raise RuntimeError
        assert instance.run_storage.get_cursor_values({"a"}) == {}
