"""Reports of the samples are of the day on which these were built."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gristmill.reasoning import builds
from tests.report_day import VARIABLE, day_of, working_as_asked, working_on


def test_the_day_of_a_data_root_is_that_of_its_latest_report(tmp_path: Path) -> None:
    before = datetime.now(UTC).date().isoformat()
    assert before <= day_of(tmp_path) <= datetime.now(UTC).date().isoformat()
    reports = tmp_path / "reasoning/reports"
    reports.mkdir(parents=True)
    for name in ("2001-02-03.json", "2001-02-01.json", "summary.json"):
        (reports / name).touch()
    assert day_of(tmp_path) == "2001-02-03"


def test_reports_are_of_the_day_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with working_on("2001-02-03"):
        assert builds.today().isoformat() == "2001-02-03"
    monkeypatch.setenv(VARIABLE, "2001-02-04")
    with working_as_asked():
        assert builds.today().isoformat() == "2001-02-04"
    monkeypatch.delenv(VARIABLE)
    with working_as_asked():
        assert builds.today().isoformat() > "2001-02-04"
