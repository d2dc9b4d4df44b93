"""The databases of runs have small pages; those of all runs together, and other files, do not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.history import small_databases


def _page_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("pragma page_size").fetchone()[0])


def test_the_database_of_a_run_is_half_as_large_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_databases.install()

    @dg.job
    def idle() -> None: ...

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        storage: Any = instance.event_log_storage
        run = idle.execute_in_process(instance=instance)
        small = Path(storage.path_for_shard(run.run_id))
        monkeypatch.setattr(small_databases, "PAGE_BYTES", 4096)
        large = Path(storage.path_for_shard(idle.execute_in_process(instance=instance).run_id))
        # A database that is there keeps its pages.
        monkeypatch.undo()
        assert len(instance.all_logs(large.stem)) == len(instance.all_logs(small.stem)) > 0
        index = Path(storage.path_for_shard("index"))
        assert [_page_bytes(path) for path in (small, large, index)] == [1024, 4096, 4096]
        assert small.stat().st_size < large.stat().st_size / 2


@pytest.mark.parametrize("name", ["other/0b6e7c3a-8d0e-4e55-9f0b-6d1f3c2a1b00.db", "runs/.db"])
def test_other_databases_keep_the_pages_of_sqlite(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir()
    with closing(sqlite3.connect(tmp_path / name)) as database:
        small_databases._begin(database, None)
        database.execute("create table a (b)")
    assert _page_bytes(tmp_path / name) == 4096
