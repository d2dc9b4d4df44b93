"""Rows of a dataset: in batches, whatever their size."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.builders.dataset import build_dataset
from gristmill.puzzles.read import rows
from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
from gristmill.puzzles.read.rows import Dataset, mapped_integers
from tests.puzzles.read.folders import write_set, write_split
from tests.puzzles.toy import plan


@pytest.mark.parametrize("step", [1, 5, 18, 100, None])
def test_batches_are_the_whole_set_in_order(step, tmp_path):
    build_dataset(plan(), tmp_path / "out")
    dataset = Dataset(tmp_path / "out")
    batches = list(dataset.rows("train", "all", step))
    arrays = dataset.arrays("train", "all")
    assert [batch.first for batch in batches] == list(range(0, 18, step or 18))
    assert np.array_equal(np.concatenate([batch.inputs for batch in batches]), arrays.inputs)
    assert np.array_equal(np.concatenate([batch.labels for batch in batches]), arrays.labels)
    assert arrays.origins is not None
    assert arrays.origins[4].tolist() == [0, 4, 1]


def test_a_dataset_without_a_trace_has_no_kind(tmp_path):
    build_dataset(plan(), tmp_path / "out")
    assert Dataset(tmp_path / "out").kind == "toy"
    assert list(Dataset(tmp_path / "out").sets()) == [("train", "all"), ("test", "all")]
    (tmp_path / "out/trace/sources.json").unlink()
    (tmp_path / "out/trace/train/all.npy").unlink()
    dataset = Dataset(tmp_path / "out")
    assert dataset.kind is None
    assert dataset.arrays("train", "all").origins is None


def _as_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        (
            "trace/train/all.npy",
            lambda path: np.save(path, np.zeros((17, 3), np.int32)),
            "a row for each example",
        ),
        (
            "train/all__inputs.npy",
            lambda path: np.save(path, np.asfortranarray(np.load(path))),
            "C order",
        ),
        ("train/all__inputs.npy", _as_a_folder, "cannot be read"),
    ],
)
def test_an_array_of_another_form_is_refused(tmp_path, name, change, rule):
    build_dataset(plan(), tmp_path / "out")
    change(tmp_path / "out" / name)
    with pytest.raises(BadInput, match=rule):
        Dataset(tmp_path / "out").arrays("train", "all")


COUNT = 9
"""Puzzles, and groups."""


def opened(root: Path) -> PuzzleDataset:
    return PuzzleDataset(PuzzleDatasetConfig(0, root, 2, False, 1, 0, 1))


@pytest.fixture(params=[1, 2, 3, 4, 8, 9, 10, 100])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine groups of a puzzle with two examples; so many entries are checked at once."""
    monkeypatch.setattr(rows, "_CHECKED_AT_ONCE", request.param)
    root = write_split(tmp_path / "train")
    write_set(root / "train", "all", seed=0, puzzles=[1] * COUNT, examples=[2] * COUNT)
    return root


def changed(root: Path, field: str, place: int, value: int) -> None:
    path = root / f"train/all__{field}.npy"
    array = np.load(path)
    array[place] = value
    np.save(path, array)


@pytest.mark.parametrize(("field", "step"), [("puzzle_indices", 2), ("group_indices", 1)])
def test_an_entry_that_does_not_grow_is_found_at_every_place(root, field, step):
    opened(root)
    for place in range(1, COUNT):
        changed(root, field, place, step * (place - 1))
        rule = f"{field}.npy: entry {place} is not greater than entry {place - 1}, counted from 0"
        with pytest.raises(BadInput, match=rule):
            opened(root)
        changed(root, field, place, step * (place + 1))
        rule = f"entry {place + 1} is not greater than entry {place}, counted from 0"
        with pytest.raises(BadInput, match=rule):
            opened(root)
        changed(root, field, place, step * place)
    opened(root)


@pytest.mark.parametrize("value", [-1, 5])
def test_an_identifier_that_is_none_is_found_at_every_place(root, value):
    for place in range(COUNT):
        before = int(np.load(root / "train/all__puzzle_identifiers.npy")[place])
        changed(root, "puzzle_identifiers", place, value)
        rule = f"puzzle {place} has the identifier {value}, expected 0 to 4"
        with pytest.raises(BadInput, match=rule):
            opened(root)
        changed(root, "puzzle_identifiers", place, before)
    opened(root)


@pytest.mark.parametrize("value", [0, 4])
def test_the_first_and_the_last_identifier_may_be_anywhere(root, value):
    for place in range(COUNT):
        changed(root, "puzzle_identifiers", place, value)
    batches: list[Any] = [batch for _, batch, _ in opened(root)]
    assert {int(each) for batch in batches for each in batch["puzzle_identifiers"]} == {value}


CURE = "build the dataset again, or copy it again"


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 3)])
@pytest.mark.parametrize("dtype", ["u1", "<i4"])
def test_integers_are_as_they_were_written_and_cannot_be_changed(tmp_path, shape, dtype):
    file = tmp_path / "a.npy"
    written = np.arange(shape[0] * shape[1], dtype=dtype).reshape(shape)
    np.save(file, written)
    found = mapped_integers(file, file, 2)
    assert (found.dtype, found.shape) == (written.dtype, shape)
    assert found.tolist() == written.tolist()
    if found.size:
        assert not found.flags.writeable


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_that_is_cut_or_too_long_is_refused_with_both_sizes(tmp_path, change):
    file = tmp_path / "a.npy"
    np.save(file, np.zeros((2, 3), "<i4"))
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(size + change)
    with pytest.raises(BadInput) as caught:
        mapped_integers(file, Path("puzzles/x/a.npy"), 2)
    says = f"has {size + change} bytes, its header says {size}"
    assert str(caught.value) == f"puzzles/x/a.npy: {says}: {CURE}"
