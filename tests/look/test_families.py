"""Each family is asked whether it reads files as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.families import catalogs
from gristmill.look.families import asked, fits, hints
from gristmill.look.finding import look
from gristmill.look.reading import listed
from gristmill.untrusted.files import REFUSE_LINKS

BOARD = "53..7...." * 9
SAMPLES = {place: write for each in catalogs() for place, write in each.samples.items()}
FAMILIES = ("chess", "puzzles", "macroxue")
DROPS = [each for each in SAMPLES if each.split("/")[0] in FAMILIES and ".toml" not in each]


@pytest.mark.parametrize("place", DROPS)
def test_a_sample_drop_is_read_by_its_family(place: str, tmp_path: Path) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    SAMPLES[place](path)
    taken, _ = asked(listed(path, REFUSE_LINKS), REFUSE_LINKS)
    assert [taker.inbox for taker in taken] == [place.split("/")[0]]
    assert taken[0].command == f"gristmill drop --family {taken[0].inbox} {path}"


def test_tables_of_texts_are_no_puzzles_whatever_their_names(tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("question,answer\nHow many are there?,2\n")
    found = look(tmp_path)
    assert found.takers == []
    assert found.proposal.good == 2


def test_parquet_without_the_columns_of_synth_is_not_taken_by_it(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / ".done").touch()
    for number in range(4):
        table = pa.table({"question": ["How many are there?"], "answer": [str(number)]})
        pq.write_table(table, tmp_path / f"train-{number}.parquet")
    taken, _ = asked(listed(tmp_path, REFUSE_LINKS), REFUSE_LINKS)
    assert [taker.inbox for taker in taken] == ["synth"]
    found = look(tmp_path)
    assert not fits(taken[0], found.columns)
    assert (found.takers, found.proposal.good) == ([], 4)


FORMS = {
    "Kaggle": (
        "arc-agi_training_challenges.json",
        json.dumps({"t": {"train": []}}),
        "tasks of ARC",
    ),
    "Sudoku": ("sudoku.csv", f"quizzes,solutions\n{BOARD},{BOARD}\n", "Sudokus of 81 cells"),
    "grids": ("a.jsonl", json.dumps({"input": [[1, 2]], "output": [[2, 1]]}), "grids as lists"),
    "steps": ("log.jsonl", json.dumps({"board": [0, 2], "move": 1}), "steps of a game"),
}


def test_a_folder_of_games_is_a_collection_and_a_file_of_them_is_named_one(tmp_path: Path) -> None:
    games = tmp_path / "twic.pgn"
    games.write_text('[Event "x"]\n[White "J\u00f6rg"]\n\n1. e4 e5 *\n', "latin-1")
    found = look(tmp_path)
    (taker,) = found.takers
    assert (taker.inbox, taker.path) == ("chess", tmp_path)
    assert taker.lines[0] == "1 file taken" and 'encoding = "latin-1"' in taker.lines[1]
    found = look(games)
    assert found.takers == []
    assert any("any PGNs in a folder of their own" in hint for hint in found.hints)
    assert "not a month that has ended" in found.refused["chess"]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_no_family_reads_is_named_with_one_that_is_read(
    form: str, tmp_path: Path
) -> None:
    name, text, said = FORMS[form]
    (tmp_path / name).write_text(text)
    found = look(tmp_path)
    assert found.takers == []
    assert [hint for hint in hints(found.reading, found.columns) if said in hint]
