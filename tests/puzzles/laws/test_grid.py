"""What breaks the rules of grids and of mazes is found, and nothing else."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gristmill.puzzles.builders.grid import build_grid
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.config import GridConfig, MazeConfig
from gristmill.puzzles.laws.contract import trace_laws
from gristmill.puzzles.laws.grid import grid_laws, maze_laws
from tests.puzzles import grids
from tests.puzzles.laws.test_domino import change
from tests.puzzles.plain_mazes import maze, write_csv


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grids")
    rows = [grids.row(k, 2 + k % 2, 3, group=f"g{k // 2}", puzzle=f"p{k}") for k in range(4)]
    source = grids.write(folder / "mine/train.jsonl", rows)
    grids.write(source / "test.jsonl", [grids.row(9, 3, 3, puzzle="q"), grids.row(8, puzzle="r")])
    build_grid(source, folder / "out", GridConfig(values=4, dihedral=True, identifiers=True))
    return folder / "out"


def _set(name: str, place: Any, value: int) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        array = np.load(folder / f"{name}.npy")
        array[place] = value
        np.save(folder / f"{name}.npy", array)

    return apply


def _copied(field: str, row: int, source: int) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        array = np.load(folder / f"train/all__{field}.npy")
        array[row] = array[source]
        np.save(folder / f"train/all__{field}.npy", array)

    return apply


def _json(name: str, **values: Any) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        read = json.loads((folder / name).read_text())
        read.get("config", read).update(values)
        (folder / name).write_text(json.dumps(read))

    return apply


def _leak(folder: Path) -> None:
    for field in ("inputs", "labels"):
        trained = np.load(folder / f"train/all__{field}.npy")
        tested = np.load(folder / f"test/all__{field}.npy")
        tested[0] = trained[3]  # a symmetry of the first puzzle
        np.save(folder / f"test/all__{field}.npy", tested)


def _renamed(folder: Path) -> None:
    listed = json.loads((folder / "identifiers.json").read_text())
    listed[2] = "other"
    (folder / "identifiers.json").write_text(json.dumps(listed))


@pytest.mark.parametrize(
    ("change", "law", "place"),
    [
        (_set("train/all__inputs", (0, 0), 0), "border", "train/all row 0"),
        (_set("test/all__labels", (1, 8), 2), "border", "test/all row 1"),
        (_set("test/all__labels", (0, slice(None)), 0), "border", "test/all row 0"),
        (_copied("inputs", 5, 4), "symmetry", "train/all row 5"),
        (_copied("labels", 7, 6), "symmetry", "train/all row 7"),
        (_set("trace/train/all", (3, 2), 4), "group", "train/all"),
        (_set("train/all__group_indices", 1, 15), "group", "train/all"),
        (_set("train/all__puzzle_identifiers", 1, 4), "identifier", "train/all puzzle 1"),
        (_set("train/all__puzzle_identifiers", 0, 0), "identifier", "train/all puzzle 0"),
        (_renamed, "identifier", "train/all puzzle 1"),
        (_leak, "leak", "test/all row 0"),
        (_json("train/dataset.json", vocab_size=6), "encoding", "vocab_size"),
        (_json("trace/sources.json", height=2), "encoding", "seq_len"),
        (_json("trace/sources.json", identifiers=False), "identifier", "must hold <blank> alone"),
    ],
)
def test_what_breaks_a_rule_is_found(copy, change, law, place):
    assert list(grid_laws(copy)) == []
    change(copy)
    found = list(grid_laws(copy))
    assert any(each.law == law and place in str(each) for each in found), list(map(str, found))


def test_padding_within_a_grid_is_no_finding_where_a_cell_may_be_padding(tmp_path):
    row = {"input": ["a.b", "..a"], "output": [".b"]}
    source = grids.write(tmp_path / "mine/train.jsonl", [row])
    grids.write(source / "test.jsonl", [{"input": ["ab"], "output": ["b"]}])
    build_grid(source, tmp_path / "out", GridConfig(alphabet="ab.", pad=".", dihedral=True))
    assert list(grid_laws(tmp_path / "out")) == []


def test_the_laws_of_the_trace_know_groups_of_several_sources(copy):
    assert list(trace_laws(copy)) == []
    _set("trace/train/all", (9, 1), 7)(copy)  # a symmetry of the second puzzle of its group
    assert "row 9" in str(next(iter(trace_laws(copy))))


def test_a_group_of_another_kind_has_one_source(copy):
    path = copy / "trace/sources.json"
    path.write_text(path.read_text().replace('"kind": "grid"', '"kind": "maze"'))
    assert "begins with draw 0" in " ".join(map(str, trace_laws(copy)))


@pytest.fixture(scope="module")
def mazes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("maze"), Random(6)
    (folder / "drop").mkdir()
    for split, count in (("train", 12), ("test", 30)):
        write_csv(folder / "drop" / f"{split}.csv", [maze(random, 7) for _ in range(count)])
    build_maze(folder / "drop", folder / "out", MazeConfig(aug=True))
    return folder / "out"


@pytest.fixture
def maze_copy(mazes: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(mazes, tmp_path / "mazes"))


def found(folder: Path) -> list[tuple[str, str]]:
    return [(violation.law, violation.where) for violation in maze_laws(folder)]


def test_a_broken_row_is_named_with_split_set_and_rule(maze_copy):
    def add_start(inputs: np.ndarray) -> None:
        inputs[4, np.flatnonzero(inputs[4] == 1)[0]] = 3

    change(maze_copy, "test/all__inputs.npy", add_start)
    assert found(maze_copy) == [
        ("one_start", "test/all row 4"),
        ("label_changes_cell", "test/all row 4"),
    ]


@pytest.mark.parametrize("field", ["inputs", "labels"])
@pytest.mark.parametrize("symmetry", [1, 7])
def test_a_symmetry_that_differs_in_one_token_is_named(maze_copy, field, symmetry):
    row = 3 * 8 + symmetry

    def differ(tokens: np.ndarray) -> None:
        tokens[row, 48] = 6 - tokens[row, 48] or 1

    change(maze_copy, f"train/all__{field}.npy", differ)
    assert found(maze_copy) == [("group", f"train/all row {row}")]


def test_symmetries_in_another_order_are_named(maze_copy):
    def exchange(values: np.ndarray) -> None:
        values[[1, 3]] = values[[3, 1]]

    for field in ("inputs", "labels"):
        change(maze_copy, f"train/all__{field}.npy", exchange)
    assert found(maze_copy) == [("group", "train/all row 1"), ("group", "train/all row 3")]


def test_a_maze_that_is_there_twice_or_in_both_splits_is_named(maze_copy):
    for field in ("inputs", "labels"):
        turned = np.load(maze_copy / f"train/all__{field}.npy")[8 + 5]

        def put(values: np.ndarray, turned: np.ndarray = turned) -> None:
            values[9] = values[2]
            values[20] = turned

        change(maze_copy, f"test/all__{field}.npy", put)
    assert found(maze_copy) == [("distinct", "test/all row 9"), ("leak", "test/all row 20")]


def test_groups_of_another_size_and_other_draws_are_named(maze_copy):
    change(maze_copy, "trace/train/all.npy", lambda origins: origins.__setitem__((9, 2), 0))
    assert found(maze_copy) == [("group", "trace/train/all.npy")]
    change(maze_copy, "train/all__group_indices.npy", lambda index: index.__setitem__(1, 7))
    assert found(maze_copy) == [("group", "train/all__group_indices.npy")]


def test_rows_of_no_square_and_missing_files_are_named(maze_copy):
    for field in ("inputs", "labels"):
        path = maze_copy / f"test/all__{field}.npy"
        np.save(path, np.load(path)[:, :48])
    assert found(maze_copy) == [("not_square", "test/all")]
    (maze_copy / "test/all__labels.npy").unlink()
    assert [law for law, _ in found(maze_copy)] == ["readable"]


def test_no_groups_of_eight_are_asked_for_without_augmentation(mazes, tmp_path):
    out = tmp_path / "out"
    build_maze(mazes.parent / "drop", out, MazeConfig(dtype="uint8"))
    assert found(out) == []
