"""Places in violations, and the limit on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gristmill.laws import MOST
from gristmill.macroxue.laws.games import game_laws
from gristmill.macroxue.laws.report import Finder
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.moves import DIRECTIONS
from tests.macroxue.games import play, step_rows, write_pack

HIGH = [17, 16, *[0] * 13, 1]


GAMES = [play(seed, 150) for seed in range(5)] + [play(7, 150, HIGH)]


def test_many_breaches_are_counted(tmp_path: Path) -> None:
    steps = step_rows(GAMES[:3])
    steps["board_eval"] += 1
    violations = list(game_laws(write_pack(tmp_path / "p", GAMES[:3], steps=steps)))
    assert [v.law for v in violations] == ["board_eval"] * (MOST + 1)
    assert violations[-1].found == f"{len(steps) - MOST} more"


def test_further_violations_of_rows_and_runs_are_counted_by_law(tmp_path: Path) -> None:
    stream = StepStream(write_pack(tmp_path / "p", GAMES[:1]))
    finder = Finder()
    wrong = np.arange(stream.rows) < MOST + 2
    texts = [v.found for v in finder.rows("low", stream.batch(0, stream.rows), wrong, "{move}")]
    assert texts == [DIRECTIONS[move] for move in GAMES[0].moves[:MOST].tolist()]
    for run_id in range(MOST):
        assert [v.where for v in finder.run("score", run_id, "x")] == [f"run {run_id}"]
    assert [(v.law, v.where, v.found) for v in finder.rest()] == [
        ("low", "further places", "2 more")
    ]
    assert list(finder.run("score", MOST, "x")) == []
    assert [(v.law, v.found) for v in finder.rest()] == [("low", "2 more"), ("score", "1 more")]
