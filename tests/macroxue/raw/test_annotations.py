"""A folder of annotations: rows by game, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import MANIFEST, ROWS, STUDENT
from gristmill.macroxue.raw.annotations import Annotations, account
from tests.macroxue.annotated import BINS, write_annotations
from tests.macroxue.games import play, run_table, step_rows, write_pack

GAMES = [play(seed, 20) for seed in range(4)]
STEPS, RUNS = step_rows(GAMES), run_table(GAMES)
FIRST = "annotations-000000.npy"


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    return write_annotations(tmp_path / "drop", write_pack(tmp_path / "p", GAMES), files=3)


def _changed(drop: Path, change: Callable[[np.ndarray], object], name: str = FIRST) -> None:
    rows = np.load(drop / name)
    change(rows)
    np.save(drop / name, rows)


def test_rows_are_found_by_game_whatever_its_run_id_is(drop: Path) -> None:
    found = Annotations(drop)
    assert (found.rows, found.maps[STUDENT][0].dtype["bins"].shape) == (len(STEPS), (4, BINS))
    own = STEPS[STEPS["run_id"] == 2]
    places = found.places(replace(RUNS[2], id=77), own)
    assert places.tolist() == np.flatnonzero(STEPS["run_id"] == 2).tolist()
    assert np.array_equal(found.take(ROWS, places)["teacher_move"], own["move_dir"])
    assert (found.places(replace(RUNS[2], max_score=1), own) == -1).all()


def test_steps_without_annotation_have_no_place(drop: Path, tmp_path: Path) -> None:
    part = write_annotations(tmp_path / "part", tmp_path / "p", keep=slice(5, None))
    places = Annotations(part).places(RUNS[0], STEPS[STEPS["run_id"] == 0])
    assert places.tolist() == [-1] * 5 + list(range(len(places) - 5))


def test_an_account_takes_the_files_of_the_annotator(drop: Path) -> None:
    (drop / "notes.txt").write_text("x")
    found = account(drop)
    assert len(found.taken[""]) == 3 * 4 + 3
    assert found.left_out == {"notes.txt": "no file of annotations"}


def _manifest(text: str) -> Callable[[Path], object]:
    return lambda drop: (drop / MANIFEST).write_text(text)


def _cut(drop: Path) -> None:
    path = drop / FIRST
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (lambda drop: [file.unlink() for file in drop.glob("annotations-0*")], "no folder of"),
        (lambda drop: (drop / FIRST).write_bytes(b"x"), "no npy header that can be read"),
        (lambda drop: np.save(drop / FIRST, np.zeros(3)), "is not what annotations-"),
        (lambda drop: np.save(drop / "annotations-student-000000.npy", STEPS), "is not what"),
        (_cut, "copy it again"),
        (lambda drop: (drop / "annotations-value-000002.npy").unlink(), "not as many rows as"),
        (lambda drop: (drop / MANIFEST).unlink(), "is missing"),
        (_manifest("[]"), "is not an object"),
        (_manifest("{"), MANIFEST),
        (lambda drop: (drop / "metadata.db").unlink(), "metadata.db"),
        (lambda drop: _changed(drop, lambda rows: rows["run_id"].put(1, 3)), "sort them by run"),
    ],
)
def test_a_damaged_folder_is_refused(
    drop: Path, damage: Callable[[Path], object], rule: str
) -> None:
    damage(drop)
    with pytest.raises(BadInput, match=rule):
        account(drop)


@pytest.mark.parametrize(
    ("column", "row", "value", "rule"),
    [
        ("step_index", 3, 900, "step_index falls"),
        ("step_index", 19, 900, "step 900 is not in the game"),
        ("teacher_move", 3, 9, "step 3: teacher_move is 9, the game's move is"),
    ],
)
def test_annotations_of_another_game_are_refused(
    drop: Path, column: str, row: int, value: int, rule: str
) -> None:
    _changed(drop, lambda rows: rows[column].put(row, value))
    with pytest.raises(BadInput, match=rule):
        Annotations(drop).places(RUNS[0], STEPS[STEPS["run_id"] == 0])


def test_an_unknown_teacher_move_is_allowed(drop: Path) -> None:
    _changed(drop, lambda rows: rows["teacher_move"].put(3, 255))
    assert json.loads((drop / MANIFEST).read_text())["kinds"]
    assert (Annotations(drop).places(RUNS[0], STEPS[STEPS["run_id"] == 0]) >= 0).all()
