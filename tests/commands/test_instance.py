"""An instance says what keeps its runs, and is known to open without Dagster where it is so."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from commands import checkout
from commands import instance as instance_files
from commands.state import instance_state
from gristmill.publish import doctor
from gristmill.publish.doctor import Verdict
from tests.paths import CHECKOUT

_CONFIG = "telemetry: {enabled: false}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an instance that Dagster has opened."""
    (tmp_path / "dagster.yaml").write_text(_CONFIG)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert not instance_files.history_that_opens(CHECKOUT, tmp_path)
    with checkout.open_instance():
        return tmp_path


def _run(folder: Path, name: str, statement: str) -> None:
    with closing(sqlite3.connect(folder / name)) as connection, connection:
        connection.execute(statement)


def test_an_instance_that_was_opened_answers_without_dagster(home):
    assert instance_files.history_that_opens(CHECKOUT, home)
    code = (
        "import sys\nfrom commands.state import main\nmain()\n"
        "print({'dagster', 'sqlalchemy', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == '{"storage": "SqliteRunStorage", "refusal": null}\nset()\n'


def test_a_storage_in_another_folder_answers(home):
    (home / "dagster.yaml").write_text(f"storage: {{sqlite: {{base_dir: {home / 'other'}}}}}\n")
    assert instance_state() == {"storage": "SqliteRunStorage", "refusal": None}
    assert instance_files.history_that_opens(CHECKOUT, home)
    (home / "other/history/runs.db").unlink()
    assert not instance_files.history_that_opens(CHECKOUT, home)
    assert not (home / "other/history/runs.db").exists()


@pytest.mark.parametrize(
    "text",
    [
        f"{_CONFIG}storage: {{nothing: {{}}}}\n",
        f"{_CONFIG}unknown: 1\n",
        "[",
        "run_storage: {module: a, class: B}\n",
    ],
)
def test_a_dagster_yaml_that_was_not_opened_is_not_known(home, text):
    (home / "dagster.yaml").write_text(text)
    assert not instance_files.history_that_opens(CHECKOUT, home)
    assert instance_state()["refusal"] is not None


@pytest.mark.parametrize("text", ["run_storage: {module: a, class: B}\n", "- a\n", "[", "\0"])
def test_a_history_that_may_be_elsewhere_is_not_known_to_open(home, text):
    (home / "dagster.yaml").write_text(text)
    instance_files.note_opened(CHECKOUT, home)
    assert not instance_files.history_that_opens(CHECKOUT, home)


def test_another_dagster_has_not_opened_it(home, monkeypatch):
    monkeypatch.setattr(instance_files.metadata, "version", lambda _: "0.1")
    assert not instance_files.history_that_opens(CHECKOUT, home)


def _damage(database: Path) -> None:
    database.write_bytes(b"no database" * 1000)


def _two_heads(database: Path) -> None:
    _run(database.parent, database.name, "insert into alembic_version values ('0000')")


def _no_tables(database: Path) -> None:
    _run(database.parent, database.name, "drop table if exists event_logs")
    _run(database.parent, database.name, "drop table if exists runs")
    _run(database.parent, database.name, "drop table if exists job_ticks")


@pytest.mark.parametrize("spoil", [_damage, _two_heads, _no_tables, Path.unlink])
@pytest.mark.parametrize(
    "name", ["history/runs.db", "history/runs/index.db", "schedules/schedules.db"]
)
def test_a_spoilt_database_is_not_known_to_open(home, name, spoil):
    spoil(home / name)
    assert not instance_files.history_that_opens(CHECKOUT, home)


def test_nothing_is_noted_of_an_instance_that_does_not_open(home, monkeypatch):
    (home / "dagster.yaml").write_text("unknown: 1\n")
    note = (home / "opened.sha256").read_text()
    assert instance_state()["refusal"] is not None
    assert (home / "opened.sha256").read_text() == note


def test_a_folder_that_cannot_be_written_has_no_note(home):
    (home / "opened.sha256").unlink()
    (home / "opened.sha256").mkdir()
    instance_files.note_opened(CHECKOUT, home)
    assert not instance_files.history_that_opens(CHECKOUT, home)


def test_an_instance_that_does_not_answer_says_why(home):
    (home / "dagster.yaml").write_text("storage: {nothing: {}}\n")
    refusal = instance_state()["refusal"]
    assert refusal is not None
    assert "nothing" in refusal
    assert "\n" not in refusal


def test_the_doctor_asks_in_a_process_of_its_own(home, monkeypatch):
    found = doctor.of_instance()
    assert (found.found, found.verdict) == ("SqliteRunStorage, reachable", Verdict.OK)
    monkeypatch.setattr(doctor, "_INSTANCE_SECONDS", 0.01)
    found = doctor.of_instance()
    assert "no answer" in found.found
    assert found.verdict is Verdict.NOTE


def test_a_folder_of_the_user_is_not_taken_for_the_commands(home, tmp_path, monkeypatch):
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands/__init__.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert doctor.of_instance().verdict is Verdict.OK
