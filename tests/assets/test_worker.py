"""The process of a run, and the databases that it holds open."""

import json
import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from assets import worker
from assets.versions import RANGE
from bench.batch_assets import parts, published, source
from resources import Lake
from tests import dagster_caches
from tests.e2e.live_instance import until


@pytest.mark.parametrize("name", ["a) b (c", "x) Z 1"])
def test_a_command_name_with_parentheses_does_not_confuse(name, tmp_path):
    (tmp_path / name).symlink_to("/bin/sleep")
    with subprocess.Popen([tmp_path / name, "60"]) as process:
        try:
            comm = Path(f"/proc/{process.pid}/comm")
            until("the name is there", lambda: comm.read_text().strip() == name)
            signature = worker.identity(process.pid)
            assert signature is not None
            assert int(signature.split(":")[2]) > 0
            assert worker.is_alive(signature)
        finally:
            process.kill()


def test_a_code_server_answers_while_its_socket_or_its_port_is_listened_to(tmp_path):
    path = str(tmp_path / "server.sock")
    tag = json.dumps({"host": "localhost", "socket": path})
    assert not worker.answers(tag)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert worker.answers(tag)
    # What a kill leaves: the file of the socket, and nobody behind it.
    assert Path(path).exists()
    assert not worker.answers(tag)
    with socket.create_server(("127.0.0.1", 0)) as server:
        tag = json.dumps({"host": "127.0.0.1", "port": server.getsockname()[1]})
        assert worker.answers(tag)
    assert not worker.answers(tag)


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dagster_caches, "keeps_connections", False)
    for held in (worker._instance, worker._run):
        for connection in held.values():
            connection.close()
        held.clear()


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as made:
        yield made


def logs(instance: dg.DagsterInstance) -> set[str]:
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


def test_a_log_that_is_held_stays_after_an_event(instance):
    assert logs(instance) == set()
    worker.hold_databases(instance)
    assert logs(instance) == {"index"}
    held = dict(worker._instance)
    assert [file.name for file in held] == ["index.db", "runs.db", "schedules.db"]
    worker.hold_databases(instance)
    assert worker._instance == held
    assert logs(instance) == {"index"}
    history = path(instance, "index").parent.parent
    for file in history / "runs.db", history.parent / "schedules/schedules.db":
        with closing(sqlite3.connect(file)) as other:
            other.execute("pragma user_version = 1")
        assert file.with_name(f"{file.name}-wal").exists()


def test_of_runs_the_latest_is_held_whatever_thread_says_so(instance):
    first, second = add_run(instance), add_run(instance)
    worker.hold_databases(instance, first)
    worker.hold_databases(instance)
    assert logs(instance) == {"index", first}
    with ThreadPoolExecutor(1) as pool:
        pool.submit(worker.hold_databases, instance, second).result()
    assert list(worker._run) == [path(instance, second)]
    assert logs(instance) == {"index", second}


def test_another_instance_takes_the_place_of_the_first(instance, tmp_path):
    worker.hold_databases(instance)
    (tmp_path / "other").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "other")) as other:
        worker.hold_databases(other)
        assert (logs(instance), logs(other)) == (set(), {"index"})


def test_a_log_that_is_held_blocks_no_writer(instance):
    worker.hold_databases(instance)
    with sqlite3.connect(path(instance, "index"), timeout=0, isolation_level=None) as other:
        other.execute("VACUUM")
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)


@pytest.mark.parametrize("damage", ["missing", "no database", "a folder"])
def test_what_cannot_be_opened_is_not_held(instance, damage):
    run = path(instance, "r")
    if damage == "no database":
        run.write_bytes(b"no database at all" * 100)
    elif damage == "a folder":
        run.mkdir()
    worker.hold_databases(instance, "r")
    assert (len(worker._instance), len(worker._run)) == (3, 0)
    assert run.exists() is (damage != "missing")


@pytest.mark.parametrize("given", [{}, {"path_for_shard": "/no-such-events/{}.db".format}])
def test_another_storage_and_a_folder_at_the_top_of_a_disk_are_left_alone(given):
    instance: Any = SimpleNamespace(event_log_storage=SimpleNamespace(**given))
    worker.hold_databases(instance, "r")
    assert not worker._instance and not worker._run


def test_a_run_holds_its_log_from_its_first_build(instance, tmp_path):
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


def test_a_process_is_known_by_its_signature_and_the_launcher_holds_the_index():
    named = {"module": "commands.serving.launcher", "class": "LocalHealthLauncher"}
    with dg.instance_for_test(overrides={"run_launcher": named}) as instance:
        assert logs(instance) == set()
        assert instance.run_launcher.supports_check_run_worker_health
        assert logs(instance) == {"index"}
    signature = worker.identity(os.getpid())
    assert signature is not None
    assert worker.is_alive(signature)
    assert signature == worker.identity(os.getpid())
    with subprocess.Popen(["sleep", "60"]) as process:
        signature = worker.identity(process.pid)
        assert signature is not None
        assert worker.is_alive(signature)
        process.kill()
        until("the process ended", lambda: not worker.is_alive(signature))
        assert Path(f"/proc/{process.pid}").exists()  # a zombie, since nobody waited for it
    assert not worker.is_alive(signature)
    boot, process, started = str(worker.identity(os.getpid())).split(":")
    assert not worker.is_alive(f"{boot}:{process}:{int(started) - 1}")
    assert not worker.is_alive(f"00000000:{process}:{started}")


def _page_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("pragma page_size").fetchone()[0])


def test_the_database_of_a_run_is_half_as_large_and_whole(tmp_path, monkeypatch):
    worker.tune_databases()

    @dg.job
    def idle() -> None: ...

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        storage: Any = instance.event_log_storage
        run = idle.execute_in_process(instance=instance)
        small = Path(storage.path_for_shard(run.run_id))
        monkeypatch.setattr(worker, "PAGE_BYTES", 4096)
        large = Path(storage.path_for_shard(idle.execute_in_process(instance=instance).run_id))
        # A database that is there keeps its pages.
        monkeypatch.undo()
        assert len(instance.all_logs(large.stem)) == len(instance.all_logs(small.stem)) > 0
        index = Path(storage.path_for_shard("index"))
        assert [_page_bytes(path) for path in (small, large, index)] == [1024, 4096, 4096]
        assert small.stat().st_size < large.stat().st_size / 2


@pytest.mark.parametrize(
    ("mode", "before", "flush"), [("wal", 2, 1), ("wal", 0, 0), ("delete", 2, 2)]
)
def test_what_has_a_write_ahead_log_is_flushed_with_what_follows(tmp_path, mode, before, flush):
    with closing(sqlite3.connect(tmp_path / "index.db")) as database:
        database.execute(f"pragma journal_mode = {mode}")
        database.execute(f"pragma synchronous = {before}")
        worker._tune(database, None)
        assert database.execute("pragma synchronous").fetchone() == (flush,)


def _range_run(instance: dg.DagsterInstance, data: Path) -> str:
    """A run of three partitions, and what came before it of their input; its id."""
    for key in ("p0000", "p0001", "p0000"):
        instance.report_runless_asset_event(dg.AssetMaterialization("source", partition=key))
    instance.report_runless_asset_event(
        dg.AssetObservation("source", partition="p0002", tags={"dagster/data_version": "b"})
    )
    data.mkdir()
    return dg.materialize(
        [source, published],
        selection=[published],
        instance=instance,
        resources={"lake": Lake(data_root=str(data))},
        tags=dict(zip(RANGE, ("p0000", "p0002"), strict=True)),
    ).run_id


def _said(instance: dg.DagsterInstance, run: str) -> list[object]:
    """What an instance says of the events of `_range_run`, but for times and ids of runs."""
    found: list[object] = []
    for asset in map(dg.AssetKey, ("source", "published")):
        for fetch in instance.fetch_materializations, instance.fetch_observations:
            records = [each.event_log_entry for each in fetch(asset, limit=9).records]
            found += [(each.event_type, each.partition) for each in map(_event, records)]
            found += [_tags(instance, asset, kind) for kind in _KINDS]
        (record,) = instance.get_asset_records([asset])
        last = record.asset_entry.last_materialization
        found += [last and _event(last).partition, record.asset_entry.last_run_id == run]
        status = instance.get_status_by_partition(asset, ["p0000", "p0002"], parts)
        found += [{key: one and one.value for key, one in (status or {}).items()}]
    events = [each.dagster_event for each in instance.all_logs(run) if each.dagster_event]
    return [*found, *((each.event_type, each.partition) for each in events)]


_KINDS = (dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION)


def _event(entry: dg.EventLogEntry) -> Any:
    return entry.dagster_event


def _tags(instance: dg.DagsterInstance, asset: dg.AssetKey, kind: Any) -> dict[str, set[str]]:
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        asset, kind, ["dagster/data_version"]
    )
    return {key: set(named.items()) for key, named in tags.items()}


def test_events_that_are_stored_together_say_what_they_say_one_by_one(tmp_path, monkeypatch):
    sizes: list[int] = []
    store = worker.store_events

    def noted(storage: Any, events: Any) -> None:
        sizes.append(len(events))
        store(storage, events)

    monkeypatch.setattr(worker, "store_events", noted)
    monkeypatch.setattr(worker, "_MOST_SECONDS", 600.0)
    said = []
    for name, block in (("alone", nullcontext), ("together", worker.stored_together)):
        (tmp_path / name).mkdir()
        with dg.DagsterInstance.local_temp(str(tmp_path / name)) as instance:
            if name == "alone":
                monkeypatch.setattr(worker, "_NEEDED", ("no such name",))
            with block(instance):
                run = _range_run(instance, tmp_path / name / "data")
            said.append(_said(instance, run))
            assert sizes == ([] if name == "alone" else [4, 3, 3])
        monkeypatch.setattr(worker, "_NEEDED", needed)
    assert said[0] == said[1]


needed = worker._NEEDED


@pytest.mark.parametrize("ends", ["full", "old", "error", "other run"])
def test_no_event_waits_long_or_is_lost(instance, monkeypatch, ends):
    monkeypatch.setattr(worker, "_MOST_WAITING", 2 if ends == "full" else 100)
    monkeypatch.setattr(worker, "_MOST_SECONDS", 0.0 if ends == "old" else 60.0)
    thing = dg.AssetKey("thing")

    def stored() -> int:
        return len(instance.fetch_materializations(thing, limit=9).records)

    with suppress(ZeroDivisionError), worker.stored_together(instance):
        with worker.stored_together(instance):
            instance.report_runless_asset_event(dg.AssetMaterialization(thing))
        assert stored() == (ends == "old")
        if ends == "other run":
            add_run(instance)
            assert stored() == 1
        instance.report_runless_asset_event(dg.AssetMaterialization(thing))
        assert stored() == {"full": 2, "old": 2, "error": 0, "other run": 1}[ends]
        assert 1 / (ends != "error")
    assert stored() == 2
    assert "store_event" not in vars(instance.event_log_storage)


@pytest.mark.parametrize("name", ["other/0b6e7c3a-8d0e-4e55-9f0b-6d1f3c2a1b00.db", "runs/.db"])
def test_other_databases_keep_the_pages_of_sqlite(tmp_path, name):
    (tmp_path / name).parent.mkdir()
    with closing(sqlite3.connect(tmp_path / name)) as database:
        worker._tune(database, None)
        database.execute("create table a (b)")
    assert _page_bytes(tmp_path / name) == 4096
