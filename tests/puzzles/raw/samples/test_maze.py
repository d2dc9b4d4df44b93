"""The sample drop of mazes."""

from __future__ import annotations

import csv
from pathlib import Path

from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.config import MazeConfig
from gristmill.puzzles.laws.maze import maze_laws
from gristmill.puzzles.raw.samples.maze import MAZES, SIDE, write_maze_sample
from tests.puzzles.plain_mazes import broken


def test_the_sample_is_always_the_same(tmp_path: Path) -> None:
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
