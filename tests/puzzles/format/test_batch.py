"""A batch: shapes that do not fit together are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.domains.arc_grid import parse_id
from gristmill.puzzles.format.batch import Batch
from gristmill.puzzles.raw.samples import write_maze_sample
from gristmill.puzzles.read.rows import Dataset
from gristmill.untrusted.npy_header import npy_header
from tests.puzzles import arc_tasks, sudoku, viewer

WHOLE: dict[str, Any] = {
    "inputs": np.ones((3, 4), np.uint8),
    "labels": np.ones((3, 4), np.uint8),
    "origins": np.zeros((3, 3), np.int32),
    "examples": np.array([1, 2], np.int32),
    "puzzles": np.array([2], np.int32),
    "names": ("a", "b"),
}


def test_a_batch_may_be_empty_or_without_names() -> None:
    Batch(**{**WHOLE, "names": None})
    none = {name: array[:0] for name, array in WHOLE.items()}
    assert len(Batch(**none).inputs) == 0


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"labels": np.ones((3, 5), np.uint8)}, "differ"),
        ({"labels": np.ones((3, 4), np.int32)}, "both be uint8"),
        ({"inputs": np.ones((3, 4)), "labels": np.ones((3, 4))}, "both be uint8"),
        ({"origins": np.zeros((2, 3), np.int32)}, "origins"),
        ({"origins": np.zeros((3, 3), np.int64)}, r"origins int64 \(3, 3\), expected int32"),
        ({"examples": np.array([0, 3], np.int32)}, "needs an example"),
        ({"puzzles": np.array([0, 2], np.int32)}, "needs an example"),
        ({"examples": np.array([1, 1], np.int32)}, "add up"),
        ({"puzzles": np.array([1], np.int32)}, "add up"),
        ({"names": ("a",)}, "one entry for each puzzle"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Batch(**{**WHOLE, **change})


def _arc(folder: Path, dtype: str) -> None:
    source = arc_tasks.source(folder / "drop")
    build_arc(source, folder / "out", ArcConfig(num_aug=3, dtype=dtype))


def _sudoku(folder: Path, dtype: str) -> None:
    pairs = sudoku.pairs(0, 4)
    drop = sudoku.write_drop(folder / "drop", pairs[:3], pairs[3:])
    build_sudoku(drop, folder / "out", SudokuConfig(num_aug=2, dtype=dtype))


def _maze(folder: Path, dtype: str) -> None:
    write_maze_sample(folder / "drop")
    build_maze(folder / "drop", folder / "out", MazeConfig(aug=True, dtype=dtype))


BUILDS: dict[str, tuple[Callable[[Path, str], None], int]] = {
    "arc": (_arc, 30),
    "sudoku": (_sudoku, 9),
    "maze": (_maze, 0),
}


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize("kind", BUILDS)
def test_the_viewer_of_the_original_shows_every_puzzle_of_a_folder(
    kind: str, dtype: str, tmp_path: Path
) -> None:
    build, side = BUILDS[kind]
    build(tmp_path, dtype)
    dataset = Dataset(tmp_path / "out")
    for split in ("train", "test"):
        arrays = dataset.arrays(split, "all")
        groups = viewer.shown(tmp_path / "out", split)
        puzzles = [puzzle for group in groups for puzzle in group]
        pairs = [pair for _, held in puzzles for pair in held]
        assert len(groups) == len(arrays.group_indices) - 1 == dataset.metadata(split).total_groups
        assert len(puzzles) == len(arrays.puzzle_identifiers)
        for field in ("inputs", "labels"):
            drawn = np.array([getattr(pair, field).reshape(-1) for pair in pairs])
            assert np.array_equal(drawn, getattr(arrays, field))
        if side:
            assert pairs[0].inputs.shape == (side, side)
        names = [name for name, _ in puzzles]
        if kind == "arc":
            assert all(len({parse_id(name)[0] for name, _ in group}) == 1 for group in groups)
        else:
            assert set(names) == {"<blank>"}


def test_the_viewer_reads_domino_and_cannot_draw_it(tmp_path: Path) -> None:
    build_domino(tmp_path / "out", DominoConfig(num_games=9))
    tokens = viewer.read_npy((tmp_path / "out/train/all__inputs.npy").read_bytes())
    assert tokens.shape[1] == 72
    with pytest.raises(AssertionError, match="only squares"):
        viewer.shown(tmp_path / "out", "train")


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_the_largest_header_has_a_length_of_one_byte(dtype: type) -> None:
    for shape in ((2**31 - 1, 2**31 - 1), (2**31,), (0, 900), (1,)):
        header = npy_header(dtype, shape)
        assert viewer.header_fits(header)
        assert len(header) % 64 == 0, "numbers begin at a multiple of their size"
        assert header[:8] == b"\x93NUMPY\x01\x00"
