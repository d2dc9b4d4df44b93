"""The connections that Dagster's storages keep in tests: for how long, and to which file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster._core.storage.event_log.sqlite import sqlite_event_log
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
