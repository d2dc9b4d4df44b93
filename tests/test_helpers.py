"""The helpers of the tests: connections, late imports, folders, days, results and requirements."""

import gc
import multiprocessing
import os
import sqlite3
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import DagsterInstance
from dagster._core.execution import compute_logs
from dagster._core.instance import config as instance_config
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from sqlalchemy import text
from sqlalchemy.pool import NullPool

from gristmill.reasoning import builds
from tests import dagster_caches
from tests.later import COLLECTED, later
from tests.paths import CHECKOUT, memory, ran
from tests.report_day import VARIABLE as DAY
from tests.report_day import day_of, working_as_asked, working_on
from tests.requirements import VARIABLE as REQUIRED
from tests.requirements import cannot_run, missing_real_data
from tests.run_folder import FOLDER, RunFolder, take_named


def test_collecting_imports_neither_torch_nor_megatron(pytestconfig):
    """Of all files that this run has collected; they are 7 seconds of each worker."""
    collected = pytestconfig.stash[COLLECTED]
    assert "tests.later" in collected
    assert not {"torch", "megatron.core.utils"} & collected


def test_tests_run_with_the_garbage_collector_and_skip_without_a_module():
    """Without what was collected, which stays for the whole run."""
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    for missing in (later("no_such_module"), later("json", "no_such_module")):
        with pytest.raises(pytest.skip.Exception, match="no_such_module"):
            _ = missing.dumps


def test_a_module_is_imported_when_an_attribute_is_read(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "a_module", None)
    del sys.modules["a_module"]
    (tmp_path / "a_module.py").write_text("ANSWER = 5\n")
    module = later("a_module")
    assert not hasattr(module, "__test__")  # pytest asks each name of a file for it
    assert "a_module" not in sys.modules
    assert module.ANSWER == 5
    with pytest.raises(AttributeError, match="QUESTION"):
        _ = module.QUESTION


def test_a_folder_in_memory_has_room_and_takes_code(monkeypatch):
    def found(may_write: bool = True, free: int = 100, flags: int = 0) -> Path | None:
        held = SimpleNamespace(f_bavail=free, f_frsize=10, f_flag=flags)
        monkeypatch.setattr(os, "access", lambda *_: may_write)
        monkeypatch.setattr(os, "statvfs", lambda _: held)
        return memory(1000)

    assert found() == Path("/dev/shm")
    assert found(may_write=False) is None
    assert found(free=99) is None
    assert found(flags=os.ST_NOEXEC) is None


def test_the_day_of_a_data_root_is_that_of_its_latest_report(tmp_path):
    before = datetime.now(UTC).date().isoformat()
    assert before <= day_of(tmp_path) <= datetime.now(UTC).date().isoformat()
    reports = tmp_path / "reasoning/reports"
    reports.mkdir(parents=True)
    for name in ("2001-02-03.json", "2001-02-01.json", "summary.json"):
        (reports / name).touch()
    assert day_of(tmp_path) == "2001-02-03"


def test_reports_are_of_the_day_that_is_asked_for(monkeypatch):
    with working_on("2001-02-03"):
        assert builds.today().isoformat() == "2001-02-03"
    monkeypatch.setenv(DAY, "2001-02-04")
    with working_as_asked():
        assert builds.today().isoformat() == "2001-02-04"
    monkeypatch.delenv(DAY)
    with working_as_asked():
        assert builds.today().isoformat() > "2001-02-04"


CONFTEST = """
from tests import reports

def pytest_configure(config):
    reports.install(config)
"""
RESULTS = """
import time
import pytest

@pytest.fixture
def fails():
    raise ValueError("in the setup")

@pytest.fixture
def fails_later():
    yield
    raise ValueError("in the teardown")

@pytest.fixture
def slow():
    time.sleep(0.2)

def test_passes(slow): pass
def test_fails(): assert 1 == 2
def test_is_left(): pytest.skip("in the call")
@pytest.mark.skip(reason="before")
def test_is_left_before(): pass
def test_has_no_setup(fails): pass
def test_has_no_teardown(fails_later): pass
@pytest.mark.xfail
def test_may_fail(): assert False
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_every_result_is_counted(tmp_path, workers):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_results.py").write_text(RESULTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = ran(
        [
            *(sys.executable, "-m", "pytest", "-n", str(workers), "--durations=3", "-q"),
            *("-p", "no:cacheprovider"),
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTEST_ADDOPTS": ""},
    )
    assert "1 failed, 2 passed, 2 skipped, 1 xfailed, 2 errors" in done.stdout, done.stdout
    assert "setup    test_results.py::test_passes" in done.stdout
    assert "[100%]" in done.stdout


def test_a_test_without_what_it_needs_is_skipped_or_fails_where_it_is_required(monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such tool"):
        cannot_run("tool", "no such tool")
    monkeypatch.setenv(REQUIRED, "strace tool")
    with pytest.raises(pytest.fail.Exception, match="no such tool; GRISTMILL_REQUIRE requires"):
        cannot_run("tool", "no such tool")


def test_real_data_that_is_required_and_not_there_is_named(monkeypatch, tmp_path):
    for name in ("macroxue", "chess", "reasoning", "puzzles"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv(REQUIRED, raising=False)
    assert missing_real_data(tmp_path) == ""
    monkeypatch.setenv(REQUIRED, "real-data")
    assert missing_real_data(tmp_path).endswith(f"{tmp_path} has no synth")
    (tmp_path / "synth").mkdir()
    assert missing_real_data(tmp_path) == ""


def _ask(run: RunFolder) -> None:
    def make(folder: Path) -> None:
        (folder / "half").touch()
        time.sleep(0.2)
        with (folder / "makers").open("a") as file:
            file.write("made\n")

    assert (run.once("shared", make) / "makers").read_text() == "made\n"


def test_a_folder_is_made_once_and_given_when_it_is_whole(tmp_path):
    run, fork = RunFolder(tmp_path), multiprocessing.get_context("fork")
    processes = [fork.Process(target=_ask, args=(run,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]


def test_a_folder_that_could_not_be_made_is_made_by_the_next(tmp_path):
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("the disk is full")

    run = RunFolder(tmp_path)
    with pytest.raises(OSError, match="the disk is full"):
        run.once("shared", fail)
    made = run.once("shared", lambda folder: (folder / "whole").touch())
    assert [path.name for path in made.iterdir()] == ["whole"]


def test_a_folder_that_is_named_is_that_of_the_run_alone(monkeypatch, tmp_path, tmp_path_factory):
    class Config:
        stash = pytest.Stash()

    config: Any = Config()
    monkeypatch.setenv(FOLDER, str(tmp_path))
    take_named(config)
    assert RunFolder.of(config, tmp_path_factory).path == tmp_path
    assert FOLDER not in os.environ


def test_the_workers_of_a_run_have_one_folder(run_folder, request, tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    if run_folder.path not in (base, base.parent):
        return  # GRISTMILL_RUN_FOLDER names it
    worker = getattr(request.config, "workerinput", {}).get("workerid")
    assert base == (run_folder.path if worker is None else run_folder.path / f"popen-{worker}")


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


def test_a_connection_is_kept_until_it_is_released_or_its_file_is_another(file, monkeypatch):
    log, other = file.with_name("index.db-wal"), file.with_name("other.db")
    _run(file, "pragma journal_mode = wal")
    _run(file, "create table numbers (number)")
    with pytest.raises(RuntimeError), _engine(file).connect() as connection, connection.begin():
        connection.execute(text("insert into numbers values (8)"))
        raise RuntimeError
    assert log.exists()
    dagster_caches.release()
    assert not log.exists()
    _run(file, "insert into numbers values (7)")
    assert _run(file, "select number from numbers") == [(7,)]
    _run(other, "create table names (name)")
    other.rename(file)
    assert _run(file, "select name from sqlite_master") == [("names",)]
    file.unlink()
    assert _run(file, "select name from sqlite_master") == []
    monkeypatch.setattr(dagster_caches, "keeps_connections", False)
    free = file.with_name("free.db")
    _run(free, "pragma journal_mode = wal")
    _run(free, "create table numbers (number)")
    assert not free.with_name("free.db-wal").exists()


def test_what_a_step_prints_is_shown_after_it_and_the_log_has_it(tmp_path, capfd):
    dagster_caches.install()
    with (tmp_path / "shown").open("w+") as stream:
        with compute_logs.mirror_stream_to_file(stream, str(tmp_path / "log")):
            os.write(stream.fileno(), b"printed\n")
            assert (tmp_path / "shown").read_text() == ""
        assert (tmp_path / "shown").read_text() == (tmp_path / "log").read_text() == "printed\n"
    with compute_logs.mirror_stream_to_file(StringIO(), str(tmp_path / "log")):
        pass
    assert capfd.readouterr().out == "printed\n"  # as of a stream without a file


def test_the_schema_of_an_instance_is_made_once_and_in_memory_it_keeps_a_connection():
    dagster_caches.install()
    schema = instance_config.dagster_instance_config_schema
    assert schema() is schema()
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


def test_a_new_database_holds_what_dagster_makes(tmp_path, monkeypatch):
    dagster_caches.install()
    copied = _made(tmp_path / "copied")
    assert sorted(copied) == ["index.db", "run.db", "runs.db", "schedules.db"]
    monkeypatch.setattr(dagster_caches, "_begin", lambda *_: None)
    assert copied == _made(tmp_path / "made")


def test_a_database_that_is_there_or_has_a_log_is_not_begun(tmp_path):
    file = tmp_path / "folder/one.db"
    dagster_caches._begin(str(file), b"new")
    dagster_caches._begin(str(file), b"newer")
    assert [each.name for each in file.parent.iterdir()] == ["one.db"]
    assert file.read_bytes() == b"new"
    file.rename(f"{file}-wal")
    dagster_caches._begin(str(file), b"new")
    assert not file.exists()
