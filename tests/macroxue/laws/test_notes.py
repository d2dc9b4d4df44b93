"""Notes on games: what is unusual is named by run and step, and breaks no law."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import Violation
from gristmill.laws import MOST
from gristmill.macroxue.laws.games import game_laws
from gristmill.macroxue.laws.notes import game_notes
from gristmill.macroxue.read.step_stream import Batch, StepStream
from gristmill.run.progress import Progress, Report
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
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert noted == list(game_notes(pack))


def test_a_pack_without_search_rows_has_notes_too(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES, names=["a", "b", "c"])
    assert [(v.law, v.where) for v in game_notes(pack)] == [("started_late", "run 5")]


@pytest.mark.parametrize("batch_rows", [1, 1 << 17])
def test_laws_note_in_their_own_pass_what_the_notes_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    steps = step_rows(GAMES)
    steps["ev_legal"][:] = 0
    steps["branch_evs"][:] = 0
    pack = write_pack(tmp_path / "p", GAMES, steps=steps)
    passes: list[int] = []
    batches = StepStream.batches

    def counted(self: StepStream, *, whole_runs: bool) -> Iterator[Batch]:
        passes.append(self.rows)
        return batches(self, whole_runs=whole_runs, most=batch_rows)

    monkeypatch.setattr(StepStream, "batches", counted)
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert len(passes) == 1
    assert noted == list(game_notes(pack))
    assert len([note for note in noted if note.law == "chosen_ev"]) == MOST + 1


def test_notes_name_equal_games_and_files_without_the_other_one_of_their_game(
    tmp_path: Path,
) -> None:
    games = [*GAMES[:2], GAMES[1], GAMES[0]]
    pack = write_pack(tmp_path / "p", games)
    lines = [
        '{"drop":"d","kind":"unpaired_log","path":"a/killed.jsonl.gz"}',
        '{"drop":"d","kind":"unpaired_meta","path":"b.meta.json"}',
        '{"drop":"d","kind":"name_not_utf8","path":"c"}',
    ]
    (pack / "warnings.jsonl").write_text("\n".join(lines) + "\n")
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert noted == list(game_notes(pack))
    same = "the same seed, steps, score and highest tile as run"
    assert noted == [
        Violation("repeated_game", "run 2", f"{same} 1"),
        Violation("repeated_game", "run 3", f"{same} 0"),
        Violation("unpaired_log", "a/killed.jsonl.gz", "a log without its .meta.json"),
        Violation("unpaired_meta", "b.meta.json", "a meta without its .jsonl.gz"),
    ]


def test_the_notes_report_their_progress(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    reports: list[Report] = []
    with Progress(reports.append, every=0).current():
        list(game_notes(pack))
    assert {report.stage for report in reports} == {"game notes"}
    assert reports[-1].done == reports[-1].total == StepStream(pack).rows
