"""Progress: reports of a stage reach the sink, few of them, and the last one always."""

from __future__ import annotations

import threading

import pytest

from gristmill.contract import NothingToBuild
from gristmill.run import progress as progress_module
from gristmill.run.progress import (
    SILENT,
    Progress,
    Report,
    current_progress,
    reporter,
    reporting_to,
)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(progress_module.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def reports() -> list[Report]:
    return []


def test_a_stage_reports_its_beginning_and_its_end(clock: Clock, reports: list[Report]) -> None:
    with Progress(reports.append).stage("read", unit="rows", total=10) as stage:
        for _ in range(10):
            stage.advance(1)
    assert reports == [Report("read", 0, 10, "rows"), Report("read", 10, 10, "rows")]


def test_a_sink_is_called_at_most_every_so_often(clock: Clock, reports: list[Report]) -> None:
    with Progress(reports.append, every=5.0).stage("read", unit="bytes") as stage:
        for _ in range(20):
            clock.now += 1
            stage.advance(1)
    assert [report.done for report in reports] == [0, 5, 10, 15, 20, 20]
    # The total is known at the end.
    assert [report.total for report in reports] == [None] * 5 + [20]


def test_a_total_may_grow_and_a_download_may_begin_again(reports: list[Report]) -> None:
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


def test_counts_from_many_threads_add_up(reports: list[Report]) -> None:
    with Progress(reports.append, every=0.0).stage("hash", unit="bytes") as stage:
        threads = [
            threading.Thread(target=lambda: [stage.advance(1) for _ in range(5_000)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [report.done for report in reports] == [*range(20_001), 20_000]


def test_the_last_report_is_delivered_after_an_error_and_one_of_the_sink_fails_the_work() -> None:
    reports: list[Report] = []

    def refuse(report: Report) -> None:
        reports.append(report)
        if report.done == 5:
            raise OSError("no space for reports")

    for done, error in ((4, ZeroDivisionError), (5, OSError)):
        with pytest.raises(error), Progress(refuse).stage("read", "games", 9) as stage:
            stage.advance(done)
            raise ZeroDivisionError
        assert reports[-1] == Report("read", done, 9, "games")


def test_silent_progress_has_no_cost_of_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> float:
        raise AssertionError("nobody looks at the clock for nobody")

    monkeypatch.setattr(progress_module.time, "monotonic", refuse)
    with SILENT.stage("read", unit="rows", total=3) as stage:
        stage.advance(3)
        stage.expect(1)
        stage.move_to(2, 4)


def test_work_reports_its_begin_and_its_end(clock: Clock, reports: list[Report]) -> None:
    progress = Progress(reports.append, work="pack d6")
    with progress.working() as lines:
        clock.now += 3
        progress.say("second try")
        with progress.stage("read", "rows", 0) as stage:
            stage.say("slow")
        lines.append("built")
    assert [(r.moment, r.note, r.work) for r in reports] == [
        ("begin", "", "pack d6"),
        ("note", "second try", "pack d6"),
        ("stage", "", "pack d6"),
        ("note", "read: slow", "pack d6"),
        ("end", "built", "pack d6"),
    ]
    assert reports[-1].seconds == 3


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (ValueError("bad row\nline 2"), "failed: bad row"),
        (NothingToBuild("no month yet"), "not built: no month yet"),
        (ZeroDivisionError(), "failed: ZeroDivisionError"),
        (KeyboardInterrupt(), "stopped"),
    ],
)
def test_work_that_fails_ends_with_the_reason(error: BaseException, note: str) -> None:
    reports: list[Report] = []
    with pytest.raises(type(error)), Progress(reports.append).working():
        raise error
    assert [report.note for report in reports] == ["", note]


def test_code_without_a_progress_finds_that_of_its_thread() -> None:
    outer, inner = Progress(), Progress()
    assert current_progress() is SILENT
    with outer.current():
        with inner.current():
            assert current_progress() is inner
        assert current_progress() is outer
    assert current_progress() is SILENT


def test_reports_go_to_the_sink_of_the_terminal_or_to_the_default() -> None:
    log: list[Report] = []
    terminal: list[Report] = []
    with reporting_to(terminal.append):
        reporter(log.append, "pack d6").say("shown")
    reporter(log.append, "pack d7").say("logged")
    reporter().say("nowhere")
    assert [(report.work, report.note) for report in terminal] == [("pack d6", "shown")]
    assert [(report.work, report.note) for report in log] == [("pack d7", "logged")]
