"""The sample drops: the same bytes on every machine, and puzzles that builders take."""

import csv
import json
from hashlib import sha256

import numpy as np
import pytest

from gristmill import families
from gristmill.families import Subject
from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.laws.arc import arc_laws
from gristmill.puzzles.raw.arc_tasks import read_tasks
from gristmill.puzzles.raw.samples import (
    ALPHABET,
    GRIDS,
    MAZES,
    SIDE,
    write_arc_sample,
    write_grid_sample,
    write_maze_sample,
    write_sudoku_sample,
)
from tests.puzzles import sudoku
from tests.puzzles.kinds import built
from tests.puzzles.plain_mazes import broken

SAMPLES = [
    ("arc", "cc42ac7bdf5aea3a", 270),
    ("sudoku", "23b437ad0ea73d72", 48 * 4),
    ("maze", "94686729c150de5f", MAZES["train"] * 8),
    ("grid", "8369020d4bc1950b", GRIDS["train"] * 8),
]
"""The bytes of samples decide fingerprints: another version of Python must write the same."""


def test_every_sudoku_of_the_sample_has_one_solution(tmp_path):
    write_sudoku_sample(tmp_path / "drop")
    rows = []
    for split in ("train", "test"):
        with (tmp_path / "drop" / f"{split}.csv").open(newline="") as file:
            rows += [*csv.DictReader(file)]
    assert len({row["question"] for row in rows}) == len(rows) == 64
    assert len({row["answer"] for row in rows}) == 64
    assert len({int(row["rating"]) for row in rows}) > 3
    for row in rows[::9]:
        assert sudoku.solutions(row["question"].replace(".", "0")) == [row["answer"]]


@pytest.mark.parametrize(("kind", "digest", "examples"), SAMPLES)
def test_a_sample_is_the_same_on_every_machine_and_its_dataset_breaks_no_law(
    tmp_path, kind, digest, examples
):
    out, drop = built(kind, tmp_path), tmp_path / "drop"
    files = "".join(
        f"{path.relative_to(drop)} {sha256_file(path)}\n" for path in sorted(drop.rglob("*.*"))
    )
    assert sha256(files.encode()).hexdigest()[:16] == digest
    assert len(np.load(out / "train/all__inputs.npy")) == examples, "no puzzle is there twice"
    assert list(families.check(f"puzzles/{kind}", Subject(out))) == []


def test_the_sample_has_good_mazes_of_several_lengths(tmp_path):
    write_maze_sample(tmp_path / "drop")
    for split, count in MAZES.items():
        rows = list(csv.DictReader((tmp_path / "drop" / f"{split}.csv").open()))
        assert len(rows) == count
        for row in rows:
            assert len(row["question"]) == SIDE * SIDE
            assert broken(row["question"], row["answer"]) == set()
            assert int(row["rating"]) == row["answer"].count("o") + 1 >= 8
        assert len({row["rating"] for row in rows}) > 3


def test_the_sample_has_grids_that_are_filled(tmp_path):
    write_grid_sample(tmp_path / "drop")
    for split, count in GRIDS.items():
        text = (tmp_path / "drop" / f"{split}.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        assert len(rows) == count
        for row in rows:
            assert set("".join(row["output"])) <= set(ALPHABET)
            assert [line.replace("o", ".") for line in row["output"]] == row["input"]


def test_the_sample_has_what_is_unusual_in_real_tasks(tmp_path):
    write_arc_sample(tmp_path / "drop")
    tasks = {task.base: task for task in read_tasks(tmp_path / "drop")}
    assert tasks["gravity"].is_test == (True, True, False, False, False)
    assert (
        max(grid.shape[0] for task in tasks.values() for pair in task.pairs for grid in pair) > 20
    )
    for before, after in tasks["mirror"].pairs:
        np.testing.assert_array_equal(after, np.fliplr(before))
    summary = build_arc(tmp_path / "drop", tmp_path / "out", ArcConfig(num_aug=20))
    assert summary.groups == {"train": 8, "test": 3}
    assert summary.duplicates_removed > 0
    assert list(arc_laws(tmp_path / "out")) == []
