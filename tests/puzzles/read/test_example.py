"""One example of a dataset."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.format import names
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.read.trace import example
from tests.puzzles.small_datasets import SMALL, arc, other, write


@pytest.mark.parametrize(
    ("row", "puzzle", "number", "identifier"),
    [(0, 0, 0, "1a2b3c4d"), (1, 0, 1, "1a2b3c4d"), (3, 1, 1, "1a2b3c4d_t4_0132456789")],
)
def test_an_example_knows_its_puzzle(
    tmp_path: Path, row: int, puzzle: int, number: int, identifier: str
) -> None:
    found = example(Dataset(write(tmp_path / "d", arc())), "test", "all", row)
    assert (found.split, found.set_name, found.row) == ("test", "all", row)
    assert (found.puzzle, found.number, found.group, found.first) == (puzzle, number, 0, 0)
    assert (found.identifier, found.identifier_id) == (identifier, puzzle + 1)
    assert np.array_equal(found.inputs, arc().inputs[row])
    assert np.array_equal(found.labels, arc().labels[row])
    assert found.inputs.dtype == found.labels.dtype == np.int64
    assert found.file is not None
    assert found.file.path == "arc/training/1a2b3c4d.json"
    assert (found.source_row, found.draw) == (row % 2, 3 * puzzle)


def test_the_group_of_a_later_puzzle_is_found(tmp_path: Path) -> None:
    small = replace(SMALL["maze"](), puzzles=(1, 1))
    found = example(Dataset(write(tmp_path / "d", small)), "train", "all", 1)
    assert (found.puzzle, found.group, found.first) == (1, 1, 1)


def test_a_generated_example_has_no_file(tmp_path: Path) -> None:
    found = example(Dataset(write(tmp_path / "d", other())), "train", "all", 1)
    assert (found.file, found.source_row, found.draw) == (None, 1, 0)


def test_a_dataset_without_a_trace_is_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", replace(arc(), origins=None))
    found = example(Dataset(folder), "train", "all", 0)
    assert (found.file, found.source_row, found.draw) == (None, None, None)


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
def test_what_is_not_there_is_said(
    tmp_path: Path, split: str, set_name: str, row: int, rule: str
) -> None:
    data = Dataset(write(tmp_path / "d", arc()))
    with pytest.raises(BadInput) as caught:
        example(data, split, set_name, row)
    assert rule in str(caught.value)


def test_an_identifier_without_a_name_is_said(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", arc())
    (folder / names.IDENTIFIERS).write_text(json.dumps(["<blank>"]))
    with pytest.raises(BadInput, match="has 1 names, none for identifier 1"):
        example(Dataset(folder), "train", "all", 0)


@pytest.mark.parametrize("file", [1, -2])
def test_an_origin_without_a_file_is_said(tmp_path: Path, file: int) -> None:
    small = arc()
    folder = write(tmp_path / "d", replace(small, origins=[(file, 0, 0)] * 4))
    with pytest.raises(BadInput, match=f"names file {file} of 1 in trace/sources.json"):
        example(Dataset(folder), "train", "all", 2)


@pytest.mark.parametrize("field", ["puzzle_indices", "group_indices"])
@pytest.mark.parametrize("added", [9, -9])
def test_damaged_indices_are_said(tmp_path: Path, field: str, added: int) -> None:
    folder = write(tmp_path / "d", arc())
    path = folder / names.array("train", "all", field)
    np.save(path, np.load(path) + added)
    with pytest.raises(BadInput, match="the index arrays are damaged"):
        example(Dataset(folder), "train", "all", 0)
