"""Rows of a dataset: in batches, whatever their size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.builders.dataset import build_dataset
from gristmill.puzzles.read.rows import Dataset
from tests.puzzles.toy import plan


@pytest.mark.parametrize("step", [1, 5, 18, 100, None])
def test_batches_are_the_whole_set_in_order(step: int | None, tmp_path: Path) -> None:
    build_dataset(plan(), tmp_path / "out")
    dataset = Dataset(tmp_path / "out")
    batches = list(dataset.rows("train", "all", step))
    arrays = dataset.arrays("train", "all")
    assert [batch.first for batch in batches] == list(range(0, 18, step or 18))
    assert np.array_equal(np.concatenate([batch.inputs for batch in batches]), arrays.inputs)
    assert np.array_equal(np.concatenate([batch.labels for batch in batches]), arrays.labels)
    assert arrays.origins is not None
    assert arrays.origins[4].tolist() == [0, 4, 1]


def test_a_dataset_without_a_trace_has_no_kind(tmp_path: Path) -> None:
    build_dataset(plan(), tmp_path / "out")
    assert Dataset(tmp_path / "out").kind == "toy"
    assert list(Dataset(tmp_path / "out").sets()) == [("train", "all"), ("test", "all")]
    (tmp_path / "out/trace/sources.json").unlink()
    (tmp_path / "out/trace/train/all.npy").unlink()
    dataset = Dataset(tmp_path / "out")
    assert dataset.kind is None
    assert dataset.arrays("train", "all").origins is None


def test_origins_of_another_length_are_refused(tmp_path: Path) -> None:
    build_dataset(plan(), tmp_path / "out")
    np.save(tmp_path / "out/trace/train/all.npy", np.zeros((17, 3), np.int32))
    with pytest.raises(BadInput, match="a row for each example"):
        Dataset(tmp_path / "out").arrays("train", "all")


def test_columns_first_are_refused(tmp_path: Path) -> None:
    build_dataset(plan(), tmp_path / "out")
    path = tmp_path / "out/train/all__inputs.npy"
    np.save(path, np.asfortranarray(np.load(path)))
    with pytest.raises(BadInput, match="C order"):
        list(Dataset(tmp_path / "out").rows("train", "all"))


def test_a_folder_in_place_of_an_array_is_refused(tmp_path: Path) -> None:
    build_dataset(plan(), tmp_path / "out")
    path = tmp_path / "out/train/all__inputs.npy"
    path.unlink()
    path.mkdir()
    with pytest.raises(BadInput, match="cannot be read"):
        Dataset(tmp_path / "out").arrays("train", "all")
