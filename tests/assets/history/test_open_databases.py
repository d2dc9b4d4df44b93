"""Holding the event log open: which databases, for how long, and what cannot be held."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from assets.history import open_databases
from bench.batch_assets import published, source
from resources import Lake
from tests import dagster_caches


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dagster_caches, "keeps_connections", False)
    for held in (open_databases._instance, open_databases._run):
        for connection in held.values():
            connection.close()
        held.clear()


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as made:
        yield made


def logs(instance: dg.DagsterInstance) -> set[str]:
    """Databases whose write-ahead log is there after an event."""
    instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
    folder = path(instance, "index").parent
    return {file.name.removesuffix(".db-wal") for file in folder.glob("*.db-wal")}


def path(instance: dg.DagsterInstance, shard: str) -> Path:
    storage: Any = instance.event_log_storage
    return Path(storage.path_for_shard(shard))


def add_run(instance: dg.DagsterInstance) -> str:
    @dg.job
    def idle() -> None: ...

    run = instance.create_run_for_job(idle)
    instance.report_engine_event("an event", run)
    return str(run.run_id)


def test_a_log_that_is_held_stays_after_an_event(instance: dg.DagsterInstance) -> None:
    assert logs(instance) == set()
    open_databases.hold(instance)
    assert logs(instance) == {"index"}
    held = dict(open_databases._instance)
    assert [file.name for file in held] == ["index.db", "runs.db", "schedules.db"]
    open_databases.hold(instance)
    assert open_databases._instance == held
    assert logs(instance) == {"index"}
    history = path(instance, "index").parent.parent
    for file in history / "runs.db", history.parent / "schedules/schedules.db":
        with closing(sqlite3.connect(file)) as other:
            other.execute("pragma user_version = 1")
        assert file.with_name(f"{file.name}-wal").exists()


def test_of_runs_the_latest_is_held_whatever_thread_says_so(instance: dg.DagsterInstance) -> None:
    first, second = add_run(instance), add_run(instance)
    open_databases.hold(instance, first)
    open_databases.hold(instance)
    assert logs(instance) == {"index", first}
    with ThreadPoolExecutor(1) as pool:
        pool.submit(open_databases.hold, instance, second).result()
    assert list(open_databases._run) == [path(instance, second)]
    assert logs(instance) == {"index", second}


def test_another_instance_takes_the_place_of_the_first(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    open_databases.hold(instance)
    (tmp_path / "other").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "other")) as other:
        open_databases.hold(other)
        assert (logs(instance), logs(other)) == (set(), {"index"})


def test_a_log_that_is_held_blocks_no_writer(instance: dg.DagsterInstance) -> None:
    open_databases.hold(instance)
    with sqlite3.connect(path(instance, "index"), timeout=0, isolation_level=None) as other:
        other.execute("VACUUM")
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)


@pytest.mark.parametrize("damage", ["missing", "no database", "a folder"])
def test_what_cannot_be_opened_is_not_held(instance: dg.DagsterInstance, damage: str) -> None:
    run = path(instance, "r")
    if damage == "no database":
        run.write_bytes(b"no database at all" * 100)
    elif damage == "a folder":
        run.mkdir()
    open_databases.hold(instance, "r")
    assert (len(open_databases._instance), len(open_databases._run)) == (3, 0)
    assert run.exists() is (damage != "missing")


@pytest.mark.parametrize("given", [{}, {"path_for_shard": "/no-such-events/{}.db".format}])
def test_another_storage_and_a_folder_at_the_top_of_a_disk_are_left_alone(given: Any) -> None:
    instance: Any = SimpleNamespace(event_log_storage=SimpleNamespace(**given))
    open_databases.hold(instance, "r")
    assert not open_databases._instance and not open_databases._run


def test_a_run_holds_its_log_from_its_first_build(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    result = dg.materialize(
        [source, published],
        selection=[published],
        instance=instance,
        resources={"lake": Lake(data_root=str(tmp_path / "data"))},
        partition_key="p0000",
    )
    assert result.success
    assert logs(instance) == {"index", result.run_id}


def test_the_launcher_holds_the_index() -> None:
    named = {"module": "commands.serving.launcher", "class": "LocalHealthLauncher"}
    with dg.instance_for_test(overrides={"run_launcher": named}) as instance:
        assert logs(instance) == set()
        assert instance.run_launcher.supports_check_run_worker_health
        assert logs(instance) == {"index"}
