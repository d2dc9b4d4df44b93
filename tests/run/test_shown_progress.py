"""How progress is shown: few lines in a log, one bar for each piece of work in a terminal."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gristmill.run.progress import Progress, Report, reporter
from gristmill.run.shown_progress import LogLines, TerminalBar, shown_on_stderr
from tests.run.test_progress import Clock, clock

__all__ = ["clock"]


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
def test_long_work_has_a_line_every_ten_seconds_short_work_its_notes_and_its_end(
    clock: Clock, named: bool
) -> None:
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


def test_an_output_that_is_no_terminal_has_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_on_stderr() as progress:
        progress.say("first try")
        reporter(work="pack d6").say("second try")
    assert tuple(capsys.readouterr()) == ("", "first try\npack d6: second try\n")
    for term, kind in (("xterm", TerminalBar), ("dumb", LogLines)):
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
