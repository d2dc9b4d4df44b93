"""The laws of mazes name what was changed in a dataset."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.config import MazeConfig
from gristmill.puzzles.laws.maze import maze_laws
from tests.puzzles.laws.test_domino import change
from tests.puzzles.plain_mazes import maze, write_csv


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("maze"), Random(6)
    (folder / "drop").mkdir()
    for split, count in (("train", 12), ("test", 30)):
        write_csv(folder / "drop" / f"{split}.csv", [maze(random, 7) for _ in range(count)])
    build_maze(folder / "drop", folder / "out", MazeConfig(aug=True))
    return folder / "out"


def found(folder: Path) -> list[tuple[str, str]]:
    return [(violation.law, violation.where) for violation in maze_laws(folder)]


def test_a_broken_row_is_named_with_split_set_and_rule(copy: Path) -> None:
    def add_start(inputs: np.ndarray) -> None:
        inputs[4, np.flatnonzero(inputs[4] == 1)[0]] = 3

    change(copy, "test/all__inputs.npy", add_start)
    assert found(copy) == [
        ("one_start", "test/all row 4"),
        ("label_changes_cell", "test/all row 4"),
    ]


@pytest.mark.parametrize("field", ["inputs", "labels"])
@pytest.mark.parametrize("symmetry", [1, 7])
def test_a_symmetry_that_differs_in_one_token_is_named(
    copy: Path, field: str, symmetry: int
) -> None:
    row = 3 * 8 + symmetry

    def differ(tokens: np.ndarray) -> None:
        tokens[row, 48] = 6 - tokens[row, 48] or 1

    change(copy, f"train/all__{field}.npy", differ)
    assert found(copy) == [("group", f"train/all row {row}")]


def test_symmetries_in_another_order_are_named(copy: Path) -> None:
    def exchange(values: np.ndarray) -> None:
        values[[1, 3]] = values[[3, 1]]

    for field in ("inputs", "labels"):
        change(copy, f"train/all__{field}.npy", exchange)
    assert found(copy) == [("group", "train/all row 1"), ("group", "train/all row 3")]


def test_a_maze_that_is_there_twice_or_in_both_splits_is_named(copy: Path) -> None:
    for field in ("inputs", "labels"):
        turned = np.load(copy / f"train/all__{field}.npy")[8 + 5]

        def put(values: np.ndarray, turned: np.ndarray = turned) -> None:
            values[9] = values[2]
            values[20] = turned

        change(copy, f"test/all__{field}.npy", put)
    assert found(copy) == [("distinct", "test/all row 9"), ("leak", "test/all row 20")]


def test_groups_of_another_size_and_other_draws_are_named(copy: Path) -> None:
    change(copy, "trace/train/all.npy", lambda origins: origins.__setitem__((9, 2), 0))
    assert found(copy) == [("group", "trace/train/all.npy")]
    change(copy, "train/all__group_indices.npy", lambda index: index.__setitem__(1, 7))
    assert found(copy) == [("group", "train/all__group_indices.npy")]


def test_rows_of_no_square_and_missing_files_are_named(copy: Path) -> None:
    for field in ("inputs", "labels"):
        path = copy / f"test/all__{field}.npy"
        np.save(path, np.load(path)[:, :48])
    assert found(copy) == [("not_square", "test/all")]
    (copy / "test/all__labels.npy").unlink()
    assert [law for law, _ in found(copy)] == ["readable"]


def test_no_groups_of_eight_are_asked_for_without_augmentation(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    build_maze(dataset.parent / "drop", out, MazeConfig(dtype="uint8"))
    assert found(out) == []
