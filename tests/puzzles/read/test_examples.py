"""Examples by number are the rows of the files, and each leads to its source."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.contract import BadInput
from gristmill.families import Misuse, Request
from gristmill.hashing import sha256_file
from gristmill.loading import Loader, Plan
from gristmill.puzzles import PuzzleExamples
from gristmill.puzzles import format as names
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.domains.domino_rows import decoded
from gristmill.puzzles.domains.grid import transform
from gristmill.puzzles.format import FIELDS, SPLITS, TOKENS
from gristmill.puzzles.format.dataset import Sources
from gristmill.puzzles.read.examples import (
    SYMMETRIES,
    Example,
    example,
    parameters,
    trace,
    traced_example,
)
from gristmill.puzzles.read.rows import Dataset
from tests.puzzles.read.folders import write_split
from tests.puzzles.small_datasets import ANSWER, QUESTION, SMALL, arc, arc_tokens, other, write


def expected(folder: Path, sets: Sequence[str], ignored: int | None) -> dict[str, np.ndarray]:
    """All rows, by a loop over puzzles."""
    columns: dict[str, list[np.ndarray]] = {field: [] for field in FIELDS[:3]}
    for name in sets:
        arrays = {field: np.load(folder / f"train/{name}__{field}.npy") for field in FIELDS}
        bounds = arrays["puzzle_indices"]
        for puzzle, (first, end) in enumerate(pairwise(bounds)):
            for row in range(first, end):
                for field in TOKENS:
                    columns[field].append(arrays[field][row].astype(np.int32))
                columns["puzzle_identifiers"].append(arrays["puzzle_identifiers"][puzzle])
    found = {field: np.array(rows) for field, rows in columns.items()}
    if ignored is not None:
        found["labels"][found["labels"] == ignored] = -100
    return found


@pytest.mark.parametrize("sets", [["all"], ["all", "more", "most"]])
@pytest.mark.parametrize(("dtype", "ignored"), [("uint8", 0), ("int32", None), (">i2", 3)])
def test_examples_are_the_rows_in_any_order(tmp_path, sets, dtype, ignored):
    options = {"dtype": dtype, "ignore_label_id": ignored, "most_examples": 4, "groups": 7}
    write_split(tmp_path / "train", sets=sets, **options)  # type: ignore[arg-type]
    rows = expected(tmp_path, sets, ignored)
    examples = PuzzleExamples(tmp_path)
    count = len(examples)
    assert count == len(rows["inputs"]) > 20
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(count), 2))
    for numbers in (order, order[:1], [0], [count - 1], range(count), []):
        batch = examples.batch(numbers)
        for field, column in rows.items():
            assert batch[field].dtype == np.int32
            np.testing.assert_array_equal(batch[field], column[np.asarray(numbers, int)])
    one = examples[count - 1]
    assert {name: value.tolist() for name, value in one.items()} == {
        name: column[-1].tolist() for name, column in rows.items()
    }
    assert [example["inputs"].tolist() for example in examples] == rows["inputs"].tolist()


def test_indices_that_change_while_they_are_read_do_not_end_a_loop(tmp_path):
    write_split(tmp_path / "train")
    examples = PuzzleExamples(tmp_path)
    assert len(list(examples)) == len(examples)
    file = np.load(tmp_path / "train/all__puzzle_indices.npy", mmap_mode="r+")
    file[:] = 0
    file.flush()
    with pytest.raises(BadInput, match="was changed after it was opened"):
        list(examples)


def test_another_split_level_or_folder_is_refused(tmp_path):
    write_split(tmp_path / "train")
    with pytest.raises(ValueError, match="split 'all': must be one of train, test"):
        PuzzleExamples(tmp_path, "all")
    with pytest.raises(ValueError, match="verify"):
        PuzzleExamples(tmp_path, verify="some")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="is missing"):
        PuzzleExamples(tmp_path, "test")


def test_one_example_of_each_group_an_epoch(sample_root):
    data = PuzzleExamples(sample_root.data / "puzzles/arc-sample")
    source = data.source(groups=True)
    ends = np.cumsum([made.examples for made in data.held.sets])
    groups = sum(len(made.group_indices) - 1 for made in data.held.sets)
    assert int(source.cuts[-1]) == groups < int(ends[-1])
    (batch,) = Loader(Plan(source, seed=5), groups, form="numpy")
    found = {
        next(iter(source.origin(number))).facts()["group"] for number in batch["number"].tolist()
    }
    assert found == set(range(groups))


def test_an_example_leads_to_its_file_and_augmentation(tmp_path):
    assert trace(write(tmp_path / "d", arc()), 2, "test").facts() == {
        "example": "test all 2",
        "group": 0,
        "puzzle": 1,
        "identifier": "2 1a2b3c4d_t4_0132456789",
        "source": "arc/training/1a2b3c4d.json",
        "sha256": f"{0:064x}",
        "place": "pair 0 in the order of the file",
        "augmentation": 3,
        "task": "1a2b3c4d",
        "symmetry": "4: mirrored left and right",
        "colours": "2 to 3, 3 to 2",
        "first cell": "row 2, column 5",
    }


@pytest.mark.parametrize(
    ("kind", "row", "place"),
    [
        ("arc", 3, "pair 1 in the order of the file"),
        ("sudoku", 0, "line 2"),
        ("maze", 1, "line 2"),
        ("domino", 1, "game 1"),
        ("towers", 1, "number 1"),
    ],
)
def test_the_row_of_a_source_has_the_word_of_its_kind(tmp_path, kind, row, place):
    assert trace(write(tmp_path / "d", SMALL[kind]()), row).facts()["place"] == place


def test_a_dataset_without_a_trace_says_so(tmp_path):
    folder = write(tmp_path / "d", replace(arc(), origins=None))
    with pytest.raises(BadInput, match="was not built here, and has no trace"):
        trace(folder, 0)


def _read(folder: Path, kind: str, row: int) -> tuple[Sources, Example]:
    data = Dataset(write(folder / f"{kind}{row}", SMALL[kind]()))
    return data.sources, example(data, "train", "all", row)


@pytest.mark.parametrize(
    ("kind", "row", "said"),
    [
        ("arc", 0, {"task": "1a2b3c4d", "first cell": "row 0, column 0"}),
        ("maze", 0, {}),
        ("maze", 1, {"symmetry": "4: mirrored left and right"}),
        ("towers", 1, {}),
    ],
)
def test_a_kind_says_the_parameters_that_it_has(tmp_path, kind, row, said):
    assert parameters(*_read(tmp_path, kind, row)) == said
    sources, found = _read(tmp_path, "arc", 2)
    found = replace(found, name="1a2b3c4d_t0_0123456789")
    assert parameters(sources, found)["colours"] == "as they are"


def test_each_symmetry_has_its_words():
    grid = np.array([[1, 2, 3], [4, 5, 6]])
    turned = {
        "as it is": grid,
        "rotated by 90° counter-clockwise": np.rot90(grid),
        "rotated by 180°": np.rot90(grid, 2),
        "rotated by 270° counter-clockwise": np.rot90(grid, 3),
        "mirrored left and right": grid[:, ::-1],
        "mirrored up and down": grid[::-1],
        "transposed": grid.T,
        "transposed along the other diagonal": np.rot90(grid, 2).T,
    }
    assert len(SYMMETRIES) == len(turned) == 8
    for number, words in enumerate(SYMMETRIES):
        assert np.array_equal(transform(grid, number), turned[words])


def test_what_cannot_be_read_is_said(tmp_path):
    sources, found = _read(tmp_path, "arc", 2)
    for wrong in (replace(found, name="<blank>_"), replace(found, inputs=np.zeros(900, np.int64))):
        with pytest.raises(BadInput, match="the augmentation of example 2 cannot be read"):
            parameters(sources, wrong)
    sources, found = _read(tmp_path, "domino", 1)
    with pytest.raises(BadInput, match="cannot be read"):
        parameters(replace(sources, config={}), replace(found, draw=1))
    sources, found = _read(tmp_path, "maze", 1)
    with pytest.raises(BadInput, match="cannot be read"):
        parameters(sources, replace(found, draw=8))


def test_an_example_is_traced_by_its_number_split_and_set(tmp_path):
    folder = write(tmp_path / "d", SMALL["maze"]())
    for options, example_of in (
        ({}, "train all 1"),
        ({"split": None, "set": None}, "train all 1"),
        ({"split": "test", "set": "all"}, "test all 1"),
    ):
        (found,) = traced_example(Request(folder, "1", options))
        assert found.facts()["example"] == example_of
    with pytest.raises(BadInput, match="has no set 'hard'"):
        traced_example(Request(folder, "1", {"set": "hard"}))
    with pytest.raises(Misuse):
        traced_example(Request(folder, "first"))


def test_the_group_of_a_later_puzzle_is_found_and_a_generated_example_has_no_file(tmp_path):
    small = replace(SMALL["maze"](), puzzles=(1, 1))
    found = example(Dataset(write(tmp_path / "d", small)), "train", "all", 1)
    assert (found.puzzle, found.group) == (1, 1)
    assert np.array_equal(found.first, small.inputs[1])
    found = example(Dataset(write(tmp_path / "e", other())), "train", "all", 1)
    assert (found.file, found.source_row, found.draw) == (None, 1, 0)


@pytest.mark.parametrize(
    ("split", "set_name", "row", "rule"),
    [
        ("train", "all", 4, "has 4 examples, no example 4; they count from 0"),
        ("train", "all", -1, "has 4 examples, no example -1"),
        ("valid", "all", 0, "has no split 'valid': it is train or test"),
        ("train", "hard", 0, "has no set 'hard' in train: it has all"),
        ("train", "../train/all", 0, "has no set"),
    ],
)
def test_what_is_not_there_is_said(tmp_path, split, set_name, row, rule):
    data = Dataset(write(tmp_path / "d", arc()))
    with pytest.raises(BadInput) as caught:
        example(data, split, set_name, row)
    assert rule in str(caught.value)


def test_what_names_nothing_is_said(tmp_path):
    for file in (1, -2):
        folder = write(tmp_path / str(file), replace(arc(), origins=[(file, 0, 0)] * 4))
        with pytest.raises(BadInput, match=f"names file {file} of 1 in trace/sources.json"):
            example(Dataset(folder), "train", "all", 2)
    (folder / names.IDENTIFIERS).write_text(json.dumps(["<blank>"]))
    with pytest.raises(BadInput, match="has 1 names, none for identifier 1"):
        example(Dataset(folder), "train", "all", 0)


@pytest.mark.parametrize("field", ["puzzle_indices", "group_indices"])
@pytest.mark.parametrize("added", [9, -9])
def test_damaged_indices_are_said(tmp_path, field, added):
    folder = write(tmp_path / "d", arc())
    path = folder / names.array("train", "all", field)
    np.save(path, np.load(path) + added)
    with pytest.raises(BadInput, match="the index arrays are damaged"):
        example(Dataset(folder), "train", "all", 0)


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
        arrays = data.arrays(split, set_name)
        for row in range(len(arrays.inputs)):
            facts = trace(folder, row, split, set_name).facts()
            found.append((split, row, facts, arrays.inputs[row], arrays.labels[row]))
    assert {split for split, *_ in found} == set(SPLITS)
    return found


def _numbers(facts: Facts, name: str) -> list[int]:
    return [int(word) for word in str(facts[name]).split() if word.isdigit()]


def test_arc(tmp_path):
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


def test_sudoku(tmp_path):
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


def test_maze(tmp_path):
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
def test_domino(tmp_path, augmentation):
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
