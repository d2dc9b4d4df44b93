"""The kit of the benchmarks: what it prints, and when a run ends with status 1."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import kit
from tests.paths import ran


@pytest.fixture(autouse=True)
def nothing_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_missed", [])


def _called(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["bench", *words])


def _clock(seconds: list[float]) -> Callable[[], float]:
    """A clock by which each work takes the next of some seconds."""

    def times() -> Iterator[float]:
        for each in seconds:
            yield 0.0
            yield each

    ticks = times()
    return lambda: next(ticks)


def test_a_bound_is_met_up_to_itself_and_memory_may_grow_up_to_its_own(capsys):
    assert kit.bounded("a", 1.5, least=1.5)
    assert kit.bounded("b", 2, most=2)
    assert not kit.bounded("c", 1.49, least=1.5)
    assert not kit.bounded("d", 2001.4, most=2000)
    assert kit.bounded("e", 12.345)
    assert capsys.readouterr().out.splitlines() == [
        "a 1.50 (required >= 1.5) ok",
        "b 2.00 (required <= 2) ok",
        "c 1.49 (required >= 1.5) MISSED",
        "d 2,001 (required <= 2000) MISSED",
        "e 12.3",
    ]
    kit.grows(lambda size: 1e6 * size, 10, 12, "rows", most=1.2)
    kit.grows(lambda size: 1e6 * size, 10, 13, "rows", most=1.2)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["ok", "MISSED"]


def test_a_missed_bound_of_any_part_ends_the_run_with_its_name(monkeypatch):
    seen = []

    def first(given: kit.Given) -> None:
        kit.bounded("slow", 1, least=given.rows)

    def second(given: kit.Given) -> None:
        seen.append((given.scratch.is_dir(), given.is_cold))

    _called(monkeypatch, "--rows", "2", "--is-cold")
    with pytest.raises(SystemExit, match=r"^MISSED: slow 1$"):
        kit.main("doc", first, second, rows=1, is_cold=False)
    assert seen == [(True, True)]
    monkeypatch.setattr(kit, "_missed", [])
    _called(monkeypatch, "--only", "second")
    kit.main("doc", first, second, rows=2, is_cold=False)
    assert seen[1:] == [(True, False)]


def test_the_scratch_folder_is_where_an_option_says_and_is_removed(monkeypatch, tmp_path):
    made: list[Path] = []
    _called(monkeypatch, "--folder", str(tmp_path))
    kit.main("doc", lambda given: made.append(given.scratch), folder={"type": Path})
    assert made[0].parent == tmp_path and not made[0].exists()


def test_a_child_prints_what_it_returns_and_no_part_runs(monkeypatch, capsys):
    def part(_: kit.Given) -> None:
        raise AssertionError

    _called(monkeypatch, "--child", "a", "2")
    kit.main("doc", part, child=lambda word, number: {word: int(number)})
    assert json.loads(capsys.readouterr().out) == {"a": 2}


def test_a_comparison_has_the_median_of_the_ratios_of_its_rounds(capsys):
    # Seconds of ours and theirs, round by round: theirs is as fast, 4 and 8 times as fast.
    clock = _clock([4.0, 4.0, 8.0, 2.0, 8.0, 1.0])
    kit.compare("x", lambda: 4, lambda: 4, "a second", least=3.9, rounds=3, clock=clock, warm=False)
    out = capsys.readouterr().out
    assert out == "x: ours 0.50 a second, theirs 2.00, ratio 0.25 (required >= 3.9) MISSED\n"


def test_theirs_may_work_around_ours(capsys):
    turns: list[str] = []

    def work(name: str) -> kit.Work:
        def done() -> int:
            turns.append(name)
            return 6

        return done

    kit.compare(
        *("x", work("ours"), work("theirs"), "a second"),
        least=None,
        rounds=1,
        clock=_clock([2.0, 1.0, 4.0]),
        warm=False,
        around=True,
        before=lambda: turns.append("before"),
    )
    assert turns == ["before", "theirs", "before", "ours", "before", "theirs"]
    # Theirs takes 2 and 4 seconds for 6: as 6 in 3.
    assert capsys.readouterr().out == "x: ours 6.00 a second, theirs 2.00, ratio 3.00\n"


def test_peak_memory_counts_the_children_that_live():
    alone = kit.peak_bytes()
    assert alone > 1 << 20
    with subprocess.Popen(["sleep", "60"]) as child:
        assert kit.peak_bytes(children=True) > alone
        child.kill()
        # It has ended, and nobody waited for it: it has no memory.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert kit.peak_bytes(children=True) >= alone


@pytest.mark.slow
def test_ten_million_tokens_go_through_everything(vocabulary_root: Path, tmp_path: Path) -> None:
    """It takes 30 CPU seconds; datatrove is left out, and what is bounded in clock time."""
    words = [sys.executable, "-m", "bench.billion", "--tokens", "1e7", "--kill", "900"]
    done = ran([*words, str(tmp_path)], env=os.environ | {"GRISTMILL_DATA": str(vocabulary_root)})
    lines = dict(line.rsplit(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    rates = {what: line for what, line in lines.items() if "million tokens a CPU second" in line}
    assert len(rates) == 3, done.stdout + done.stderr
    memory = int(rates["build: drop, rows, tokens, index, laws"].split()[-2].replace(",", ""))
    assert memory < 400 and "ten rebuilds of a part" in done.stdout
