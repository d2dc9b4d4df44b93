"""How progress is shown: few lines in a log, one bar for each piece of work in a terminal."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from pathlib import Path
from threading import Condition
from typing import Any

import pytest
from rich.console import Console

from gristmill.run import kernels
from gristmill.run.progress import Progress, Report, reporter, reporting_to
from gristmill.run.shown_progress import (
    LogLines,
    PlainLines,
    TerminalBar,
    shown_on_stderr,
)
from tests.run.test_progress import Clock, clock

__all__ = ["clock"]


@pytest.fixture
def lines() -> list[str]:
    return []


def work(progress: Progress, clock: Clock, seconds: int) -> None:
    """Work of two stages and so many seconds."""
    with progress.working() as lines:
        for name in ("read", "write"):
            with progress.stage(name, "rows", total=seconds // 2 * 100) as stage:
                for _ in range(seconds // 2):
                    clock.now += 1
                    stage.advance(100)
        lines.append("built")


def test_a_log_gets_a_line_every_ten_seconds(clock: Clock, lines: list[str]) -> None:
    work(Progress(LogLines(lines.append), work="pack d6"), clock, 44)
    assert lines == [
        "read: 1,000 of 2,200 rows, 100 rows/s, 12 s left",
        "read: 2,000 of 2,200 rows, 100 rows/s, 2.0 s left",
        "write: 800 of 2,200 rows, 100 rows/s, 14 s left",
        "write: 1,800 of 2,200 rows, 100 rows/s, 4.0 s left",
    ]


def test_short_work_writes_nothing_to_a_log_but_its_notes(clock: Clock, lines: list[str]) -> None:
    progress = Progress(LogLines(lines.append))
    work(progress, clock, 8)
    progress.say("12 parts\x1b are there")
    assert lines == ["12 parts\N{REPLACEMENT CHARACTER} are there"]


def test_short_work_has_one_plain_line_each(clock: Clock, lines: list[str]) -> None:
    with reporting_to(PlainLines(lines.append)):
        for number in range(3):
            work(reporter(work=f"pack d{number}"), clock, 0)
    assert lines == [
        "pack d0: begins",
        "pack d0: built (0.0 s)",
        "pack d1: built (0.0 s)",
        "pack d2: built (0.0 s)",
    ]


def test_long_work_is_never_silent(clock: Clock, lines: list[str]) -> None:
    with reporting_to(PlainLines(lines.append)):
        work(reporter(work="pack d0"), clock, 0)
        work(reporter(work="pack d1"), clock, 24)
        work(reporter(work="pack d2"), clock, 2)
    assert lines == [
        "pack d0: begins",
        "pack d0: built (0.0 s)",
        "pack d1: read: 100 of 1,200 rows, 100 rows/s, 11 s left",
        "pack d1: read: 1,100 of 1,200 rows, 100 rows/s, 1.0 s left",
        "pack d1: write: 900 of 1,200 rows, 100 rows/s, 3.0 s left",
        "pack d1: built (24 s)",
        "pack d2: read: 100 of 100 rows, 100 rows/s",
        "pack d2: built (2.0 s)",
    ]


def test_work_without_a_name_has_a_line_every_ten_seconds(clock: Clock, lines: list[str]) -> None:
    with Progress(PlainLines(lines.append)).stage("verify", "bytes", total=3_000) as stage:
        for _ in range(3):
            clock.now += 6
            stage.advance(1_000)
    assert lines == ["verify: 2.0 kB of 3.0 kB, 167 bytes/s, 6.0 s left"]


class Lines:
    """Takes the lines of a sink that has a thread of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._came = Condition()

    def __call__(self, line: str) -> None:
        with self._came:
            self.lines.append(line)
            self._came.notify_all()

    def await_more(self, count: int) -> list[str]:
        """The next lines, with `#` in place of times."""
        with self._came:
            before = len(self.lines)
            assert self._came.wait_for(lambda: len(self.lines) >= before + count, 120)
            return [re.sub(r"[0-9.]+ s\b", "# s", line) for line in self.lines[before:]][:count]


def test_a_step_that_takes_long_is_not_silent() -> None:
    write = Lines()
    lines = write.lines
    with (
        PlainLines(write, every=0.02) as sink,
        Progress(sink, work="pack d6").working(),
    ):
        assert write.await_more(3) == ["pack d6: goes on after # s"] * 3
    assert lines[0] == "pack d6: begins"
    count = len(lines)
    time.sleep(0.1)
    assert len(lines) == count


def test_work_that_reports_nothing_is_not_silent() -> None:
    write = Lines()
    with PlainLines(write, every=0.02):
        assert write.await_more(2) == ["at work for # s"] * 2


def test_lines_of_a_stage_that_does_not_move_say_for_how_long_and_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = Lines()
    with PlainLines(write, every=0.02) as sink:
        progress = Progress(sink, work="chess 2024-01")
        with progress.stage("validate", "bytes", total=487_800) as stage:
            still = "chess 2024-01: validate: 0 bytes of 487.8 kB, unchanged for # s"
            assert still in write.await_more(3)
            monkeypatch.setattr(kernels, "is_compiling", lambda: True)
            assert f"{still}, compiling" in write.await_more(3)
            stage.say("second try")
            assert "chess 2024-01: validate: second try, # s ago, compiling" in write.await_more(3)


def test_how_long_a_stage_does_not_move_counts_from_its_last_report(clock: Clock) -> None:
    sink = PlainLines(print, every=1000)
    with Progress(sink, work="pack d6").stage("read", "rows", total=10) as stage:
        clock.now += 30
        stage.advance(4)
        clock.now += 12
        assert sink._last is not None
        assert sink._again(sink._last) == "read: 4 of 10 rows, unchanged for 12 s"


def test_plain_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Progress(PlainLines()).say("second try")
    assert tuple(capsys.readouterr()) == ("", "second try\n")


def test_a_bar_is_shown_nowhere_but_on_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with TerminalBar() as bar, Progress(bar).stage("verify", unit="bytes") as stage:
        stage.move_to(3_000_000, 3_000_000)
    assert tuple(capfd.readouterr()) == ("", "")


def bars(bar: TerminalBar) -> list[tuple[str, Any, float, str]]:
    return [
        (task.description, task.total, task.completed, task.fields["amount"])
        for task in bar._bars.tasks
    ]


def test_work_without_a_name_has_a_bar_for_each_stage() -> None:
    bar = TerminalBar(Console(file=io.StringIO(), force_terminal=True))
    bar(Report("verify", 1_200_000, 3_400_000, "bytes"))
    bar(Report("read", 5, None, "rows"))
    bar(Report("read", 7, 9, "rows"))
    assert bars(bar) == [
        ("verify", 3_400_000, 1_200_000, "1.2 MB of 3.4 MB"),
        ("read", 9, 7, "7 of 9 rows"),
    ]


def test_each_work_under_way_has_one_bar() -> None:
    output = io.StringIO()
    with TerminalBar(Console(file=output, force_terminal=True, width=100)) as bar:
        for name in ("pack [d6]", "pack d7", "pack d8"):
            bar(Report("", 0, None, "files", name, "begin"))
        bar(Report("read", 5, 9, "rows", "pack [d6]"))
        bar(Report("write", 10, 40, "bytes", "pack [d6]", rate=10.0))
        bar(Report("", 0, None, "files", "pack d7", "note", "fetch: second try"))
        bar(Report("", 0, None, "files", "pack d8", "end", "built"))
        assert bars(bar) == [
            ("pack [d6]", 40, 10, "write 10 bytes of 40 bytes, 10 bytes/s, 3.0 s left"),
            ("pack d7", None, 0, ""),
        ]
        bar._bars.refresh()
        assert "pack [d6]" in output.getvalue()
        assert "pack d7: fetch: second try\n" in output.getvalue()


def test_an_end_without_a_begin_shows_nothing() -> None:
    bar = TerminalBar(Console(file=io.StringIO(), force_terminal=True))
    bar(Report("", 0, None, "files", "pack d8", "end", "built"))
    assert bars(bar) == []


def test_an_output_that_is_no_terminal_has_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_on_stderr() as progress:
        assert progress._work == ""
        reporter(work="pack d6").say("second try")
    assert tuple(capsys.readouterr()) == ("", "pack d6: second try\n")
    for term, kind in (("xterm", TerminalBar), ("dumb", PlainLines)):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("FORCE_COLOR", "1")
        with shown_on_stderr() as progress:
            assert isinstance(progress._sink, kind), term


def test_lines_go_to_where_standard_error_was_before_a_run_took_it(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
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


def test_bars_leave_a_redirected_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with TerminalBar(console):
        sys.stdout.write("a table\n")
    assert capsys.readouterr().out == "a table\n"
