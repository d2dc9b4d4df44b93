"""Progress: reports of a stage reach the sink, few of them, and the last one always."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from gristmill.run import progress as progress_module
from gristmill.run.progress import SILENT, Progress, Report, TerminalBar, log_lines


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(progress_module.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_stage_reports_its_beginning_and_its_end(clock: Clock) -> None:
    reports: list[Report] = []
    with Progress(reports.append).stage("read", unit="rows", total=10) as stage:
        for _ in range(10):
            stage.advance(1)
    assert reports == [Report("read", 0, 10, "rows"), Report("read", 10, 10, "rows")]


def test_a_sink_is_called_at_most_every_so_often(clock: Clock) -> None:
    reports: list[Report] = []
    with Progress(reports.append, every=5.0).stage("read", unit="bytes") as stage:
        for _ in range(20):
            clock.now += 1
            stage.advance(1)
    assert [report.done for report in reports] == [0, 5, 10, 15, 20]
    assert {report.total for report in reports} == {None}


def test_the_last_report_is_delivered_after_an_error(clock: Clock) -> None:
    reports: list[Report] = []
    with (
        pytest.raises(ZeroDivisionError),
        Progress(reports.append).stage("read", unit="games", total=9) as stage,
    ):
        stage.advance(4)
        raise ZeroDivisionError
    assert reports[-1] == Report("read", 4, 9, "games")


def test_a_total_may_grow_and_a_download_may_begin_again() -> None:
    reports: list[Report] = []
    with Progress(reports.append, every=0.0).stage("fetch", unit="bytes") as stage:
        stage.expect(7)
        stage.expect(3)
        stage.advance(6)
        stage.move_to(0, 12)
        stage.move_to(12, 12)
    assert [(report.done, report.total) for report in reports] == [
        (0, None),
        (0, 7),
        (0, 10),
        (6, 10),
        (0, 12),
        (12, 12),
    ]


def test_a_report_is_delivered_once(clock: Clock) -> None:
    reports: list[Report] = []
    with Progress(reports.append, every=0.0).stage("read", unit="files", total=0) as stage:
        stage.advance(0)
    assert reports == [Report("read", 0, 0, "files")]


def test_counts_from_many_threads_add_up() -> None:
    reports: list[Report] = []
    with Progress(reports.append, every=0.0).stage("hash", unit="bytes") as stage:
        threads = [
            threading.Thread(target=lambda: [stage.advance(1) for _ in range(5_000)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [report.done for report in reports] == list(range(20_001))


def test_an_error_of_the_sink_fails_the_work() -> None:
    def refuse(report: Report) -> None:
        if report.done:
            raise OSError("no space for reports")

    with (
        pytest.raises(OSError, match="no space for reports"),
        Progress(refuse, every=0.0).stage("read", unit="rows") as stage,
    ):
        stage.advance(1)


def test_silent_progress_has_no_cost_of_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> float:
        raise AssertionError("nobody looks at the clock for nobody")

    monkeypatch.setattr(progress_module.time, "monotonic", refuse)
    with SILENT.stage("read", unit="rows", total=3) as stage:
        stage.advance(3)
        stage.expect(1)
        stage.move_to(2, 4)


def test_a_log_gets_a_line_a_report(caplog: pytest.LogCaptureFixture, clock: Clock) -> None:
    progress = Progress(log_lines(logging.getLogger("work")), every=10.0)
    with caplog.at_level(logging.INFO, "work"):
        with progress.stage("hash", unit="bytes", total=4_000) as stage:
            for _ in range(4):
                stage.advance(1_000)
        with progress.stage("read", unit="games") as stage:
            stage.advance(1_500)
    assert [record.message for record in caplog.records] == [
        "hash: 0 of 4,000 bytes",
        "hash: 4,000 of 4,000 bytes",
        "read: 0 games",
        "read: 1,500 games",
    ]


def test_a_bar_is_shown_nowhere_but_on_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with TerminalBar() as bar, Progress(bar).stage("verify", unit="bytes") as stage:
        stage.move_to(3_000_000, 3_000_000)
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_bar_shows_each_stage_with_its_amounts(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich.console

    monkeypatch.setattr(rich.console.Console, "is_terminal", True)
    bar = TerminalBar()
    bar(Report("verify", 1_200_000, 3_400_000, "bytes"))
    bar(Report("read", 5, None, "rows"))
    bar(Report("read", 7, 9, "rows"))
    shown: list[tuple[str, Any, float, str]] = [
        (task.description, task.total, task.completed, task.fields["amount"])
        for task in bar._bars.tasks
    ]
    assert shown == [
        ("verify", 3_400_000, 1_200_000, "1.2 MB of 3.4 MB"),
        ("read", 9, 7, "7 of 9 rows"),
    ]
