"""Traces of built datasets: the source and the parameters of a trace make the example once more."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.domains.dihedral import transform
from gristmill.puzzles.domains.domino_rows import decoded
from gristmill.puzzles.format.names import SPLITS
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.read.trace import example, trace
from tests.puzzles.small_datasets import ANSWER, QUESTION, arc_tokens

Facts = Mapping[str, object]
Tokens = npt.NDArray[np.integer]

_TASKS = {
    "training/0a1b2c3d": [([[1, 2, 0]], [[3], [4]]), ([[5, 5], [6, 7]], [[8, 9, 1]])],
    "evaluation/9f8e7d6c": [([[2, 0], [1, 7]], [[7]]), ([[3, 3, 4]], [[4, 4, 3]])],
}
_MAZE = ("S#   # G    ####", "S#  o#oGooo ####")
_OTHER_MAZE = ("S##    ### G####", "S## ooo###oG####")


def _rated(path: Path, rows: list[tuple[str, str]]) -> None:
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("source", "question", "answer", "rating"))
        lines.writerows(("made", question, answer, 1) for question, answer in rows)


def _all(folder: Path) -> list[tuple[str, int, Facts, Tokens, Tokens]]:
    """Split, row, facts of its trace, input and label of every example."""
    data = Dataset(folder)
    found: list[tuple[str, int, Facts, Tokens, Tokens]] = []
    for split, set_name in data.sets():
        for row in range(len(data.arrays(split, set_name).inputs)):
            one = example(data, split, set_name, row)
            facts = trace(folder, row, split, set_name).facts()
            found.append((split, row, facts, one.inputs, one.labels))
    assert {split for split, *_ in found} == set(SPLITS)
    return found


def _numbers(facts: Facts, name: str) -> list[int]:
    return [int(word) for word in str(facts[name]).split() if word.isdigit()]


def test_arc(tmp_path: Path) -> None:
    for name, pairs in _TASKS.items():
        path = tmp_path / "tasks" / f"{name}.json"
        path.parent.mkdir(parents=True)
        listed = [{"input": before, "output": after} for before, after in pairs]
        path.write_text(json.dumps({"test": listed[:1], "train": listed[1:]}))
    build_arc(tmp_path / "tasks", tmp_path / "out", ArcConfig(num_aug=6))
    checked = 0
    for _, _, facts, given, wanted in _all(tmp_path / "out"):
        source = tmp_path / str(facts["source"])
        assert facts["sha256"] == sha256_file(source)
        task = json.loads(source.read_text())
        pair = [*task["test"], *task["train"]][_numbers(facts, "place")[0]]
        colours = np.arange(10)
        symmetry = 0
        if facts["augmentation"]:
            symmetry = int(str(facts["symmetry"]).partition(":")[0])
            for change in str(facts["colours"]).split(", "):
                old, _, new = change.partition(" to ")
                colours[int(old)] = int(new)
            checked += 1
        row, column = _cell(facts)
        for tokens, side in ((given, "input"), (wanted, "output")):
            grid = transform(colours[np.array(pair[side])], symmetry)
            assert np.array_equal(tokens, arc_tokens(grid.tolist(), row, column))
    assert checked > 10


def _cell(facts: Facts) -> tuple[int, int]:
    row, _, column = str(facts["first cell"]).partition(", ")
    return int(row.removeprefix("row ")), int(column.removeprefix("column "))


def test_sudoku(tmp_path: Path) -> None:
    drop = tmp_path / "rated"
    drop.mkdir()
    filled = QUESTION.replace(".", ANSWER[QUESTION.index(".")], 1)
    _rated(drop / "train.csv", [(QUESTION, ANSWER)])
    digits = str.maketrans("123456789", "123456798")
    _rated(drop / "test.csv", [(filled.translate(digits), ANSWER.translate(digits))])
    build_sudoku(drop, tmp_path / "out", SudokuConfig(num_aug=8))
    rows = _all(tmp_path / "out")
    assert len(rows) == 10
    for split, _, facts, given, wanted in rows:
        source = tmp_path / str(facts["source"])
        assert (source.name, facts["sha256"]) == (f"{split}.csv", sha256_file(source))
        line = source.read_text().splitlines()[_numbers(facts, "place")[0] - 1].split(",")
        for tokens, text in ((given, line[1]), (wanted, line[2])):
            board = np.array([int(cell.replace(".", "0")) for cell in text]).reshape(9, 9)
            if facts["augmentation"]:
                board = board.T if facts["transposed"] == "yes, first" else board
                board = board[np.ix_(_numbers(facts, "rows from"), _numbers(facts, "columns from"))]
                board = np.array([0, *_numbers(facts, "digits 1 to 9 become")])[board]
            assert np.array_equal(tokens, board.reshape(81) + 1)


def test_maze(tmp_path: Path) -> None:
    drop = tmp_path / "mazes"
    drop.mkdir()
    _rated(drop / "train.csv", [_MAZE])
    _rated(drop / "test.csv", [_OTHER_MAZE])
    build_maze(drop, tmp_path / "out", MazeConfig(aug=True))
    rows = _all(tmp_path / "out")
    assert len(rows) == 9
    for split, _, facts, given, wanted in rows:
        source = tmp_path / str(facts["source"])
        assert source.name == f"{split}.csv"
        line = source.read_text().splitlines()[_numbers(facts, "place")[0] - 1].split(",")
        symmetry = int(str(facts["symmetry"])[0]) if facts["augmentation"] else 0
        for tokens, text in ((given, line[1]), (wanted, line[2])):
            grid = np.array(["# SGo".index(cell) + 1 for cell in text]).reshape(4, 4)
            assert np.array_equal(tokens, transform(grid, symmetry).reshape(-1))


@pytest.mark.parametrize("augmentation", ["reversal", "modular"])
def test_domino(tmp_path: Path, augmentation: str) -> None:
    config = DominoConfig(num_games=30, num_aug=3, augmentation=augmentation)  # type: ignore[arg-type]
    build_domino(tmp_path / "out", config)
    first: dict[tuple[str, object], tuple[Tokens, Tokens]] = {}
    augmented = 0
    for split, _, facts, given, wanted in _all(tmp_path / "out"):
        assert facts["source"] == "generated"
        key = (split, facts["place"])
        if not facts["augmentation"]:
            first[key] = given, wanted
            continue
        augmented += 1
        before, now = decoded(*first[key]), decoded(given, wanted)
        if augmentation == "modular":
            (offset, _) = _numbers(facts, "added to values")
            assert now.move == tuple((value + offset) % 7 for value in before.move or ())
            assert now.position == before.position
            continue
        order = [slot for slot in _numbers(facts, "hand") if slot < len(before.hand)]
        assert now.hand == tuple(before.hand[slot] for slot in order)
        is_turned = facts["chain"] == "turned round"
        assert now.table == (before.table[::-1] if is_turned else before.table)
    assert augmented > 20
