"""Progress: reports of a stage reach the sink, few of them, and the last one always."""

import io
import os
import sys
import threading
from typing import Any

import pytest
from rich.console import Console

from gristmill.contract import NothingToBuild
from gristmill.run import progress as progress_module
from gristmill.run.progress import (
    SILENT,
    LogLines,
    Progress,
    Report,
    TerminalBar,
    current_progress,
    reporter,
    shown_on_stderr,
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


def test_a_stage_reports_its_beginning_its_end_and_between_at_most_every_so_often(clock, reports):
    with Progress(reports.append).stage("read", unit="rows", total=10) as stage:
        for _ in range(10):
            stage.advance(1)
    assert reports == [Report("read", 0, 10, "rows"), Report("read", 10, 10, "rows")]
    reports.clear()
    with Progress(reports.append, every=5.0).stage("read", unit="bytes") as stage:
        for _ in range(20):
            clock.now += 1
            stage.advance(1)
    assert [report.done for report in reports] == [0, 5, 10, 15, 20, 20]
    # The total is known at the end.
    assert [report.total for report in reports] == [None] * 5 + [20]


def test_a_total_may_grow_and_a_download_may_begin_again(reports):
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


def test_counts_from_many_threads_add_up(reports):
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


def test_the_last_report_is_delivered_after_an_error_and_one_of_the_sink_fails_the_work():
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


def test_silent_progress_has_no_cost_of_a_clock(monkeypatch):
    def refuse() -> float:
        raise AssertionError("nobody looks at the clock for nobody")

    monkeypatch.setattr(progress_module.time, "monotonic", refuse)
    with SILENT.stage("read", unit="rows", total=3) as stage:
        stage.advance(3)
        stage.expect(1)
        stage.move_to(2, 4)


def test_work_reports_its_begin_and_its_end(clock, reports):
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
def test_work_that_fails_ends_with_the_reason(error, note):
    reports: list[Report] = []
    with pytest.raises(type(error)), Progress(reports.append).working():
        raise error
    assert [report.note for report in reports] == ["", note]


def test_code_without_a_progress_finds_that_of_its_thread_or_the_default():
    outer, inner = Progress(), Progress()
    assert current_progress() is SILENT
    with outer.current():
        with inner.current():
            assert current_progress() is inner
        assert current_progress() is outer
    assert current_progress() is SILENT
    log: list[Report] = []
    terminal: list[Report] = []
    with Progress(terminal.append).current():
        reporter(log.append, "pack d6").say("shown")
    reporter(log.append, "pack d7").say("logged")
    reporter().say("nowhere")
    assert [(report.work, report.note) for report in terminal] == [("pack d6", "shown")]
    assert [(report.work, report.note) for report in log] == [("pack d7", "logged")]


def work(progress: Progress, clock: Clock, seconds: int) -> None:
    """Work of two stages and so many seconds."""
    with progress.working() as lines:
        for name in ("read", "write"):
            with progress.stage(name, "rows", total=seconds // 2 * 100) as stage:
                for _ in range(seconds // 2):
                    clock.now += 1
                    stage.advance(100)
        progress.say("12 parts\x1b are there" + "." * 400)
        lines.append("built")


@pytest.mark.parametrize("named", [False, True])
def test_long_work_has_a_line_every_ten_seconds_short_work_its_notes_and_its_end(clock, named):
    lines: list[str] = []
    sink = LogLines(lines.append, named=named)
    work(Progress(sink, work="pack d6"), clock, 44)
    work(Progress(sink, work="pack d7"), clock, 2)
    note = f"12 parts\N{REPLACEMENT CHARACTER} are there{'.' * 281}… and 119 more characters"
    expected = [
        "pack d6: read: 1,000 of 2,200 rows",
        "pack d6: read: 2,000 of 2,200 rows",
        "pack d6: write: 800 of 2,200 rows",
        "pack d6: write: 1,800 of 2,200 rows",
        f"pack d6: {note}",
        *(["pack d6: built (44 s)"] if named else []),
        f"pack d7: {note}",
        *(["pack d7: built (2.0 s)"] if named else []),
    ]
    assert lines == (expected if named else [line[len("pack d6: ") :] for line in expected])


def bars(bar: TerminalBar) -> list[tuple[str, Any, float, str]]:
    return [
        (task.description, task.total, task.completed, task.fields["amount"])
        for task in bar._bars.tasks
    ]


def test_each_work_under_way_has_one_bar_and_work_without_a_name_one_for_each_stage():
    output = io.StringIO()
    with TerminalBar(Console(file=output, force_terminal=True, width=100)) as bar:
        for name in ("pack [d6]", "pack d7", "pack d8"):
            bar(Report("", 0, None, "files", name, "begin"))
        bar(Report("read", 5, 9, "rows", "pack [d6]"))
        bar(Report("write", 10, 40, "bytes", "pack [d6]"))
        bar(Report("", 0, None, "files", "pack d7", "note", "fetch: second try"))
        for _ in range(2):  # the second one had no begin
            bar(Report("", 0, None, "files", "pack d8", "end", "built"))
        assert bars(bar) == [
            ("pack [d6]", 40, 10, "write: 10 bytes of 40 bytes"),
            ("pack d7", None, 0, ""),
        ]
        bar._bars.refresh()
        assert "pack [d6]" in output.getvalue()
        assert "pack d7: fetch: second try\n" in output.getvalue()
    bar = TerminalBar(Console(file=io.StringIO(), force_terminal=True))
    bar(Report("verify", 1_200_000, 3_400_000, "bytes"))
    bar(Report("read", 5, None, "rows"))
    bar(Report("read", 7, 9, "rows"))
    assert bars(bar) == [
        ("verify", 3_400_000, 1_200_000, "1.2 MB of 3.4 MB"),
        ("read", 9, 7, "7 of 9 rows"),
    ]


def test_an_output_that_is_no_terminal_has_lines(monkeypatch, capsys):
    with shown_on_stderr() as progress:
        progress.say("first try")
        reporter(work="pack d6").say("second try")
    assert tuple(capsys.readouterr()) == ("", "first try\npack d6: second try\n")
    for term, kind in (("xterm", TerminalBar), ("dumb", LogLines)):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("FORCE_COLOR", "1")
        with shown_on_stderr() as progress:
            assert isinstance(progress._sink, kind), term


def test_lines_go_to_where_standard_error_was_before_a_run_took_it(capfd, tmp_path):
    with shown_on_stderr(), (tmp_path / "log").open("w") as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)  # as Dagster does while a step runs
        try:
            reporter(work="pack d6").say("second try")
        finally:
            os.dup2(kept, 2)
            os.close(kept)
    assert capfd.readouterr().err == "pack d6: second try\n"
    assert (tmp_path / "log").read_text() == ""


def test_bars_leave_a_redirected_standard_output_alone(capsys):
    console = Console(file=io.StringIO(), force_terminal=True)
    with TerminalBar(console):
        sys.stdout.write("a table\n")
    assert capsys.readouterr().out == "a table\n"
