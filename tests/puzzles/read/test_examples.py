"""Examples by number are the rows of the files, whatever their order, set and type."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.loading import Loader, Plan
from gristmill.puzzles import PuzzleExamples
from gristmill.puzzles.format.names import FIELDS, TOKENS
from tests.later import later
from tests.puzzles.read.folders import write_split
from tests.sample_root import SampleRoot

torch = later("torch")
torch_data = later("torch.utils.data", "torch")


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
def test_examples_are_the_rows_in_any_order(
    tmp_path: Path, sets: list[str], dtype: str, ignored: int | None
) -> None:
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


def test_a_data_loader_with_workers_shuffles_them(tmp_path: Path) -> None:
    write_split(tmp_path / "train", most_examples=3)
    examples = PuzzleExamples(str(tmp_path))
    batches = list(torch_data.DataLoader(examples, batch_size=16, shuffle=True, num_workers=2))  # type: ignore[arg-type]
    found = torch.cat([batch["inputs"] for batch in batches]).tolist()
    assert sorted(found) == sorted(expected(tmp_path, ["all"], 0)["inputs"].tolist())
    assert {batch["labels"].dtype for batch in batches} == {torch.int32}


def test_a_number_outside_is_an_index_error(tmp_path: Path) -> None:
    write_split(tmp_path / "train")
    examples = PuzzleExamples(tmp_path)
    count = len(examples)
    for wrong in (10_000, count, -count - 1):
        with pytest.raises(IndexError, match=f"no example {wrong}: there are {count}"):
            examples[wrong]
    for wrong in (10_000, count, -1):
        with pytest.raises(IndexError, match=f"no example {wrong}: there are {count}"):
            examples.batch([0, wrong])


def test_indices_that_change_while_they_are_read_do_not_end_a_loop(tmp_path: Path) -> None:
    write_split(tmp_path / "train")
    examples = PuzzleExamples(tmp_path)
    assert len(list(examples)) == len(examples)
    file = np.load(tmp_path / "train/all__puzzle_indices.npy", mmap_mode="r+")
    file[:] = 0
    file.flush()
    with pytest.raises(BadInput, match="was changed after it was opened"):
        list(examples)


@pytest.mark.parametrize("numbers", [[0.5], ["0"], [True]])
def test_anything_but_integers_is_a_type_error(tmp_path: Path, numbers: list[object]) -> None:
    write_split(tmp_path / "train")
    with pytest.raises(TypeError, match="example numbers are integers, not"):
        PuzzleExamples(tmp_path).batch(numbers)  # type: ignore[arg-type]


def test_another_split_level_or_folder_is_refused(tmp_path: Path) -> None:
    write_split(tmp_path / "train")
    with pytest.raises(ValueError, match="split 'all': must be one of train, test"):
        PuzzleExamples(tmp_path, "all")
    with pytest.raises(ValueError, match="verify"):
        PuzzleExamples(tmp_path, verify="some")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="is missing"):
        PuzzleExamples(tmp_path, "test")


def test_examples_of_a_batch_lead_to_their_raw_rows(sample_root: SampleRoot) -> None:
    data = PuzzleExamples(sample_root.data / "puzzles/sudoku-sample")
    source = data.source()
    batch = next(iter(Loader(Plan(source, seed=5), 8, form="numpy")))
    for name, column in data.batch(batch["number"]).items():
        assert np.array_equal(batch[name], column)
    for row, number in enumerate(batch["number"].tolist()):
        (trace,) = source.origin(number)
        facts = trace.facts()
        begin, end = map(int, str(facts["raw_row_bytes"]).split("-"))
        raw = (sample_root.data / str(facts["raw_file"])).read_bytes()[begin:end].decode()
        ((_, question, answer, *_),) = csv.reader([raw])
        given = sum(cell in "123456789" for cell in question)
        assert np.count_nonzero(batch["inputs"][row] > 1) == given
        if not facts["augmentation"]:
            assert (batch["labels"][row] - 1).tolist() == [int(cell) for cell in answer]


def test_one_example_of_each_group_an_epoch(sample_root: SampleRoot) -> None:
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
