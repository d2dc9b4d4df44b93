"""The instance says what keeps its runs, and why it does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.instance.state import instance_state
from gristmill.publish import doctor
from gristmill.publish.doctor import Verdict


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    return tmp_path


def test_an_instance_that_answers(home: Path) -> None:
    assert instance_state() == {"storage": "SqliteRunStorage", "refusal": None}


def test_an_instance_that_does_not_answer_says_why(home: Path) -> None:
    (home / "dagster.yaml").write_text("storage: {nothing: {}}\n")
    refusal = instance_state()["refusal"]
    assert refusal is not None
    assert "nothing" in refusal
    assert "\n" not in refusal


def test_the_doctor_asks_in_a_process_of_its_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = doctor.of_instance()
    assert (found.found, found.verdict) == ("SqliteRunStorage, reachable", Verdict.OK)
    monkeypatch.setattr(doctor, "_INSTANCE_SECONDS", 0.01)
    found = doctor.of_instance()
    assert "no answer" in found.found
    assert found.verdict is Verdict.NOTE


def test_a_folder_of_the_user_is_not_taken_for_the_commands(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands/__init__.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert doctor.of_instance().verdict is Verdict.OK
