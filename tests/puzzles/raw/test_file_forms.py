"""Packed files that would be passed over in silence."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.raw.file_forms import check_names, source_labels, unpack_hint
from gristmill.puzzles.raw.samples import write_maze_sample
from gristmill.run.parts import PartStore
from tests.puzzles import arc_tasks, sudoku
from tests.puzzles.plain_mazes import maze, write_csv


def counts(name: str) -> bool:
    return name.lower().endswith(".json") or name.lower() == "train.csv"


@pytest.mark.parametrize(
    "name",
    ["train.csv.gz", "a/x.json.zip", "train.csv.ZST", "x.JSON.xz", "Train.CSV.bz2", "x.json.7z"],
)
def test_a_packed_file_that_would_count_is_refused(name):
    with pytest.raises(BadInput, match=f"drop/{name}: is packed, .*: unpack it"):
        check_names(
            Path("drop"), ["x.json", name] if "x.json" not in name.lower() else [name], counts
        )


def test_other_names_are_let_be():
    listed = [
        *(
            "x.json",
            "Train.csv",
            "train.csv.gz",
            "X.JSON.gz",
            "x.json.zip",
            "notes.md",
            "notes.txt.gz",
        ),
        *(".train.csv.gz", ".git/X.JSON", "a/train.csv.gz", "test.csv", "README", "a.gz", "gz"),
    ]
    check_names(Path("drop"), listed, counts)
    check_names(Path("drop"), [], counts)


def test_the_first_packed_file_is_named():
    assert unpack_hint(["b.tar.GZ", "a/x.zip", "c.json"]) == "; unpack a/x.zip"
    assert unpack_hint(["c.json", "gzip", "a.gz.txt"]) == ""


BUILDS: dict[str, Callable[[list[Path], Path], object]] = {
    "arc": lambda folders, out: build_arc(folders, out, ArcConfig(num_aug=0)),
    "sudoku": lambda folders, out: build_sudoku(folders, out, SudokuConfig()),
    "maze": lambda folders, out: build_maze(folders, out, MazeConfig()),
}


@pytest.mark.parametrize("kind", BUILDS)
def test_a_source_that_is_a_file_or_missing_is_refused(kind, tmp_path):
    (tmp_path / "train.csv").write_text("x")
    (tmp_path / "empty").mkdir()
    for name, words in (("train.csv", "is not a folder"), ("nowhere", "is missing")):
        with pytest.raises(BadInput, match=f"{name}: {words}"):
            BUILDS[kind]([tmp_path / "empty", tmp_path / name], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", BUILDS)
def test_sources_of_one_name_have_longer_labels_in_any_order(kind, tmp_path, monkeypatch):
    sources = [tmp_path / name / "data" for name in "xy"]
    for number, source in enumerate(sources):
        if kind == "arc":
            name = ("training", "evaluation")[number]
            arc_tasks.write(source, {f"{name}/{number}": arc_tasks.task(number + 1)})
        elif kind == "sudoku":
            pairs = sudoku.pairs(4 * number, 4)
            sudoku.write_drop(source, pairs[:3], pairs[3:])
        else:
            source.mkdir(parents=True)
            for split in ("train", "test"):
                write_csv(source / f"{split}.csv", [maze(Random(f"{number}{split}"), 5)])
    for order in (sources, sources[::-1]):
        out = tmp_path / f"out{order is sources}"
        BUILDS[kind](order, out)
        files = json.loads((out / "trace/sources.json").read_text())["files"]
        assert {Path(file["path"]).parts[:2] for file in files} == {("x", "data"), ("y", "data")}
    assert source_labels(sources) == dict(zip(sources, ("x/data", "y/data"), strict=True))
    monkeypatch.chdir(sources[0])
    assert source_labels([Path()]) == {Path(): "data"}


def test_the_folder_of_parts_is_made(tmp_path):
    write_maze_sample(tmp_path / "drop")
    for name, build in (
        ("maze", lambda out, parts: build_maze(tmp_path / "drop", out, parts=parts)),
        ("domino", lambda out, parts: build_domino(out, DominoConfig(num_games=9), parts=parts)),
    ):
        build(tmp_path / name, PartStore(tmp_path / f"kept/{name}/parts"))
        assert list((tmp_path / f"kept/{name}/parts").glob("*.part"))
