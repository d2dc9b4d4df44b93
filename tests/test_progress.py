"""Progress says what was done, as often as it should, and nothing where nobody looks."""

import io
import logging

import pytest
from rich.console import Console

from gristmill import progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_at_most_every_so_often(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    shown = progress.Logged(logging.getLogger("work"), every=10, clock=clock)
    with caplog.at_level(logging.INFO, "work"):
        shown.start(4_000_000, "bytes")
        shown.note("steps.npy")
        for _ in range(40):
            clock.now += 1
            shown.advance(100_000)
        assert [record.message for record in caplog.records] == [
            f"{k}.0 MB of 4.0 MB ({25 * k} %) in {10 * k} s, 100.0 kB/s: steps.npy"
            for k in (1, 2, 3, 4)
        ]
        shown.finish()
        shown.finish()
    assert caplog.records[4:][0].message == "4.0 MB of 4.0 MB (100 %) in 40 s, 100.0 kB/s: finished"
    assert len(caplog.records) == 5


def test_a_total_may_be_unknown_or_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    shown = progress.Logged(logging.getLogger("work"), clock=clock)
    with caplog.at_level(logging.INFO, "work"):
        shown.start(None, "rows")
        shown.advance(1500)
        clock.now += 2
        shown.start(0, "files")
        shown.finish()
        shown.advance(3)
    assert [record.message for record in caplog.records] == [
        "1,500 rows in 2 s, 750 rows/s: finished",
        "0 files of 0 files (100 %): finished",
    ]


@pytest.mark.parametrize(
    ("unit", "expected"), [("bytes", "3.0/3.0 MB"), ("files", "3000000/3000000")]
)
def test_a_terminal_shows_a_bar(unit: str, expected: str) -> None:
    out = io.StringIO()
    shown = progress.Terminal(Console(file=out, force_terminal=True, width=120))
    shown.start(3_000_000, unit)
    shown.note("[pack] steps.npy")
    shown.advance(1_000_000)
    shown.advance(2_000_000)
    shown.finish()
    shown.finish()
    shown.advance(1)
    assert expected in out.getvalue()
    assert "[pack] steps.npy" in out.getvalue()


def test_silence(capfd: pytest.CaptureFixture[str]) -> None:
    shown = progress.silent()
    shown.start(3, "files")
    shown.note("a")
    shown.advance()
    shown.finish()
    assert capfd.readouterr() == ("", "")


def test_each_kind_is_a_progress() -> None:
    kinds: list[progress.Progress] = [progress.terminal(), progress.silent()]
    kinds.append(progress.logged(logging.getLogger("work"), 5))
    for shown in kinds:
        shown.advance(1)
        shown.finish()
