"""Notes on games: what is unusual is named by run and step, and breaks no law."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gristmill.macroxue.laws.games import game_laws
from gristmill.macroxue.laws.notes import game_notes
from tests.macroxue.games import play, step_rows, write_pack

HIGH = [17, 16, *[0] * 13, 1]
GAMES = [play(seed, 150) for seed in range(5)] + [play(7, 150, HIGH)]


def test_notes_name_evs_that_a_tokenizer_stops_at(tmp_path: Path) -> None:
    steps = step_rows(GAMES[:2])
    steps["ev_legal"][4] = 0
    steps["branch_evs"][4] = 0
    searched = (steps["valuation_type"] == 0) & (steps["ev_legal"] != 15)
    corner = int(np.flatnonzero(searched)[1])
    assert corner != 4
    steps["ev_legal"][corner] = 15
    pack = write_pack(tmp_path / "p", GAMES[:2], steps=steps)
    notes = {(v.law, v.where) for v in game_notes(pack)}
    assert ("chosen_ev", "run 0 step 4 (row 4)") in notes
    assert any(law == "search_legality" and f"(row {corner})" in where for law, where in notes)
    assert list(game_laws(pack)) == []


def test_a_pack_without_search_rows_has_notes_too(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES, names=["a", "b", "c"])
    assert [(v.law, v.where) for v in game_notes(pack)] == [("started_late", "run 5")]
