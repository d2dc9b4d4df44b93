"""Facts of runs, and which runs have gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.macroxue.format.metadata_db import Gap, Run
from gristmill.macroxue.format.rows import copied
from gristmill.macroxue.read.played import gaps_of, played, run_facts
from gristmill.macroxue.read.step_stream import StepStream
from tests.macroxue.games import play, run_table, step_rows, write_pack

HIGH = [17, 16, *[0] * 13, 1]
GAMES = [play(seed, 60) for seed in range(4)] + [play(7, 60, HIGH)]


def test_facts_of_runs_leave_out_a_run_without_rows(tmp_path: Path) -> None:
    runs = [Run(0, 1, 2, 0, 2), Run(1, 1, 0, 0, 2), Run(2, 1, 3, 0, 2)]
    steps = step_rows(GAMES[:1])[:5]
    steps["run_id"], steps["step_index"] = [0, 0, 2, 2, 2], [0, 1, 0, 1, 3]
    stream = StepStream(write_pack(tmp_path / "p", [], steps=steps, runs=runs))
    facts = run_facts(stream.batch(0, 5), np.array([1, 2, 4, 8, 16]))
    assert list(facts) == [(0, slice(0, 2), 3, True), (2, slice(2, 5), 28, False)]


@pytest.mark.parametrize(
    ("cut", "run", "gap"),
    [
        (slice(100, 101), 1, Gap(1, 41, "board")),
        (slice(60, 61), 1, None),  # it starts late, and its first board tells what is missing
        (slice(118, 120), 1, Gap(1, 57, "score")),
        (slice(250, 252), 4, Gap(4, 12, "board")),
    ],
)
def test_missing_steps_are_found_by_boards_and_by_the_score(
    tmp_path: Path, cut: slice, run: int, gap: Gap | None
) -> None:
    kept = np.ones(300, np.bool_)
    kept[cut] = False
    steps, runs = copied(step_rows(GAMES), kept), run_table(GAMES)
    runs[run] = replace(runs[run], steps=60 - (cut.stop - cut.start))
    stream = StepStream(write_pack(tmp_path / "p", GAMES, steps=steps, runs=runs))
    batch = stream.batch(0, stream.rows)
    found = [
        each for each in gaps_of(batch, stream.runs, played(batch)) if each.run_id != 4 or run == 4
    ]
    assert found == ([gap] if gap else [])


def test_step_index_does_not_decide_about_gaps(tmp_path: Path) -> None:
    steps = step_rows(GAMES[:2])
    steps["step_index"] *= 3
    stream = StepStream(write_pack(tmp_path / "p", GAMES[:2], steps=steps))
    batch = stream.batch(0, stream.rows)
    assert list(gaps_of(batch, stream.runs, played(batch))) == []
