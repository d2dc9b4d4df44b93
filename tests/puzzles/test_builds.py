"""What gives a value of a puzzle dataset, and where a person writes another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.data_root import DataRoot
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.builds import RECIPES_INBOX, place_of, settings_of, space
from gristmill.puzzles.config import ArcConfig, DominoConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.raw.samples import write_maze_sample
from gristmill.run.parts import PartStore
from gristmill.settings.tables import Settings
from tests.puzzles import arc_tasks, sudoku

OWN = 'kind = "maze"\nsources = ["here"]\n[settings]\naug = true\n'


@pytest.mark.parametrize(
    ("key", "field", "source", "target"),
    [
        ("maze-sample", "aug", "the built-in recipe maze-sample", "[settings] in OWN, a recipe"),
        ("maze-sample", "seed", "FILE", "[puzzles.maze] in FILE"),
        ("maze-sample", "dtype", "the default", "[puzzles.maze] in FILE"),
        ("mine", "aug", "OWN", "[settings] in OWN"),
        ("mine", "dtype", "the default", "[settings] in OWN"),
    ],
)
def test_a_value_is_written_where_it_counts_for_the_dataset_of_this_recipe(
    tmp_path: Path, key: str, field: str, source: str, target: str
) -> None:
    lake = DataRoot(tmp_path)
    file, own = tmp_path / "gristmill.toml", lake.inbox(RECIPES_INBOX) / f"{key}.toml"
    file.write_text("[puzzles.maze]\nseed = 3\n")
    own.parent.mkdir(parents=True)
    (own.parent / "mine.toml").write_text(OWN)
    gives, takes = place_of(lake, key, field, settings_of("maze", lake, key))
    assert gives == source.replace("OWN", str(own)).replace("FILE", str(file))
    assert takes.startswith(target.replace("OWN", str(own)).replace("FILE", str(file)))


def test_the_table_of_a_recipe_that_is_gone_has_no_name(tmp_path: Path) -> None:
    file = tmp_path / "gristmill.toml"
    found = place_of(DataRoot(tmp_path), "gone", "seed", Settings({}, file=file))
    assert found == ("the default", f"its table in {file}")


def _files(folder: Path) -> list[tuple[str, int]]:
    return [(path.as_posix(), path.stat().st_size) for path in folder.rglob("*") if path.is_file()]


def _taken(folder: Path, build: Callable[[Path, PartStore], object]) -> int:
    """Bytes of the dataset and its parts."""
    build(folder / "out", PartStore(folder / "kept/parts"))
    return sum(
        size
        for path, size in [*_files(folder / "out"), *_files(folder / "kept")]
        if path.endswith((".npy", ".part"))
    )


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
@pytest.mark.parametrize("num_aug", [0, 9])
def test_sudokus_of_csv_files(tmp_path: Path, num_aug: int, dtype: str) -> None:
    pairs = sudoku.pairs(0, 60)
    drop = sudoku.write_drop(tmp_path / "drop", pairs[:50], pairs[50:])
    config = SudokuConfig(num_aug=num_aug, dtype=dtype)  # type: ignore[arg-type]
    taken = _taken(tmp_path, lambda out, parts: build_sudoku(drop, out, config, parts=parts))
    assert taken <= space(config, _files(drop)) <= 1.5 * taken


def test_only_the_chosen_sudokus_of_training_count() -> None:
    files = [("a/train.csv", 162_000), ("a/test.csv", 1620)]
    assert space(SudokuConfig(num_aug=1), files) == 162 * 1010 + (2000 + 10) * (162 * 5 + 40)
    chosen = SudokuConfig(num_aug=1, subsample_size=100)
    assert space(chosen, files) == 162 * 1010 + (200 + 10) * (162 * 5 + 40)
    assert space(SudokuConfig(), [("bank.txt", 810)]) == 162 * 10 + 10 * (162 * 5 + 40)


@pytest.mark.parametrize("aug", [False, True])
def test_mazes(tmp_path: Path, aug: bool) -> None:
    write_maze_sample(tmp_path / "drop")
    config = MazeConfig(aug=aug)
    taken = _taken(
        tmp_path, lambda out, parts: build_maze(tmp_path / "drop", out, config, parts=parts)
    )
    # Headers of the arrays count in a dataset as small as this.
    assert taken - 16 * 128 <= space(config, _files(tmp_path / "drop")) <= 2 * taken


@pytest.mark.parametrize("size", [None, 100])
def test_dominoes(tmp_path: Path, size: int | None) -> None:
    config = DominoConfig(num_games=400, num_aug=3, subsample_size=size)
    taken = _taken(tmp_path, lambda out, parts: build_domino(out, config, parts=parts))
    assert taken <= space(config, []) <= 1.5 * taken


@pytest.mark.parametrize("indent", [None, 2])
def test_arc_counts_pairs_by_their_grids(tmp_path: Path, indent: int | None) -> None:
    tasks = {f"training/{n}": arc_tasks.task(n, train=3, test=n) for n in range(1, 5)}
    drop = arc_tasks.write(tmp_path / "arc", tasks)
    for path in drop.rglob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=indent))
    files = [(f"arc/{name}.json", (drop / f"{name}.json").stat().st_size) for name in tasks]
    assert space(ArcConfig(num_aug=0), files, tmp_path) == 22 * (1800 * 5 + 40)
    config = ArcConfig(num_aug=9, dtype="uint8")
    assert space(config, files, tmp_path) == 22 * 10 * (1800 * 2 + 40)
    assert 0.9 < space(config, files * 99, tmp_path) / (22 * 10 * (1800 * 2 + 40) * 99) < 1.1


def test_a_config_of_no_kind_needs_nothing_that_is_known() -> None:
    assert space(object(), [("a", 10)]) == 0
