"""The sample drops: the same bytes on every machine, and puzzles that builders take."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.grid import build_grid
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.config import ArcConfig, GridConfig, MazeConfig
from gristmill.puzzles.laws.arc import arc_laws
from gristmill.puzzles.laws.grid import maze_laws
from gristmill.puzzles.raw.arc_tasks import read_tasks
from gristmill.puzzles.raw.recipes import BUILT_IN
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
from tests.puzzles.plain_mazes import broken


def test_every_sudoku_of_the_sample_has_one_solution(tmp_path: Path) -> None:
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
    hashes = [sha256_file(tmp_path / "drop" / f"{split}.csv")[:16] for split in ("train", "test")]
    assert hashes == ["0149c00c1803ed39", "939a777dfb264be7"]


def test_the_sample_of_mazes_is_always_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_maze_sample(tmp_path / name)
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["test.csv", "train.csv"]
    for split in MAZES:
        one, two = (tmp_path / name / f"{split}.csv" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    # The bytes of the samples decide fingerprints: another version of Python must write the same.
    assert sha256_file(tmp_path / "one/train.csv").startswith("f448b9ddf5531845")


def test_the_sample_has_good_mazes_of_several_lengths(tmp_path: Path) -> None:
    write_maze_sample(tmp_path / "drop")
    for split, count in MAZES.items():
        rows = list(csv.DictReader((tmp_path / "drop" / f"{split}.csv").open()))
        assert len(rows) == count
        for row in rows:
            assert len(row["question"]) == SIDE * SIDE
            assert broken(row["question"], row["answer"]) == set()
            assert int(row["rating"]) == row["answer"].count("o") + 1 >= 8
        assert len({row["rating"] for row in rows}) > 3


def test_the_sample_builds_without_duplicates_and_leaks(tmp_path: Path) -> None:
    write_maze_sample(tmp_path / "drop")
    summary = build_maze(tmp_path / "drop", tmp_path / "out", MazeConfig(aug=True))
    assert summary.examples == {"train": 8 * MAZES["train"], "test": MAZES["test"]}
    assert (summary.duplicates_removed, summary.leaks_dropped) == (0, 0)
    assert list(maze_laws(tmp_path / "out")) == []


def test_the_sample_is_always_the_same_and_builds_without_leaks(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_grid_sample(tmp_path / name)
    for split, count in GRIDS.items():
        one, two = (tmp_path / name / f"{split}.jsonl" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
        rows = [json.loads(line) for line in one.read_text().splitlines()]
        assert len(rows) == count
        for row in rows:
            assert set("".join(row["output"])) <= set(ALPHABET)
            assert [line.replace("o", ".") for line in row["output"]] == row["input"]
    config = GridConfig(**BUILT_IN["grid-sample"].settings)
    assert build_grid(tmp_path / "one", tmp_path / "out", config).examples["train"] == 8 * 24


def test_the_sample_of_arc_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_arc_sample(tmp_path / name)
    one, two = (
        {path.relative_to(folder): sha256_file(path) for path in folder.rglob("*.json")}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two and len(one) == 8


def test_the_sample_has_what_is_unusual_in_real_tasks(tmp_path: Path) -> None:
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
