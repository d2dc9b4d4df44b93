"""What an augmentation may not change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.puzzles.laws.augmentation import augmentation_law
from gristmill.puzzles.read import rows
from tests.puzzles.read.folders import write_split

CONTROL, SEPARATOR = 0, 7


def write(folder: Path, groups: Sequence[int], ignored: int | None = 0) -> Path:
    """Groups of so many rows: a control field, a separator, two tokens, padding."""
    for seed, split in enumerate(("train", "test")):
        root = write_split(folder / split, groups=1, most_puzzles=1, ignore_label_id=ignored)
        chance = np.random.default_rng(seed)
        group = np.repeat(np.arange(len(groups)), groups)
        count = len(group)
        tokens = np.zeros((count, 6), np.uint8)
        tokens[:, 0] = group % 5 + 1
        tokens[:, 1] = SEPARATOR
        tokens[:, 2:4] = chance.integers(1, 6, (count, 2))
        arrays = {
            "inputs": tokens,
            "labels": tokens,
            "puzzle_identifiers": np.zeros(count, np.int32),
            "puzzle_indices": np.arange(count + 1, dtype=np.int32),
            "group_indices": np.append(0, np.cumsum(groups)).astype(np.int32),
        }
        for field, array in arrays.items():
            np.save(root / split / f"all__{field}.npy", array)
    return folder


def change(folder: Path, field: str, row: Any, column: int, token: int) -> None:
    path = folder / f"train/all__{field}.npy"
    array = np.load(path)
    array[row, column] = token
    np.save(path, array)


def found(folder: Path, **options: Any) -> list[str]:
    usual = {"fixed": [CONTROL], "separators": [SEPARATOR]}
    return [str(each) for each in augmentation_law(folder, **{**usual, **options})]


GROUPS = [3, 1, 4, 2]


@pytest.mark.parametrize("rows_at_once", [1, 2, 3, 5, 100])
def test_a_row_is_compared_with_the_first_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(rows, "_BATCH_BYTES", rows_at_once * 6)
    folder = write(tmp_path, GROUPS)
    assert found(folder) == []
    change(folder, "inputs", 7, 0, 6)
    assert found(folder) == [
        "train/all__inputs.npy row 7: augmentation: a control field of the inputs differs from the"
        " group's first row"
    ]
    change(folder, "inputs", slice(4, 8), 0, 6)
    assert found(folder) == []


@pytest.mark.parametrize(
    ("field", "column", "token", "what"),
    [
        ("inputs", 0, 6, "a control field of the inputs"),
        ("labels", 0, 6, "a control field of the labels"),
        ("inputs", 1, 1, "a separator"),
        ("inputs", 2, SEPARATOR, "a separator"),
        ("inputs", 5, 1, "padding"),
        ("inputs", 3, 0, "padding"),
        ("labels", 3, 0, "a label without loss"),
        ("labels", 5, 1, "a label without loss"),
    ],
)
def test_each_rule_is_checked_in_every_row_of_a_group(
    tmp_path: Path, field: str, column: int, token: int, what: str
) -> None:
    folder = write(tmp_path, GROUPS)
    for row in (2, 6, 9):
        change(folder, field, row, column, token)
    listed = found(folder)
    assert [text.split(":")[0].split()[-1] for text in listed] == ["2", "6", "9"]
    assert all(what in text for text in listed)


def test_other_tokens_may_change(tmp_path: Path) -> None:
    folder = write(tmp_path, GROUPS)
    change(folder, "labels", 2, 2, 5)
    change(folder, "inputs", 2, 2, 5)
    change(folder, "labels", 2, 1, 5)
    assert found(folder) == []
    assert found(folder, fixed=[0, 1])[0].count("a control field of the labels") == 1


def test_no_label_is_without_loss_where_none_is_ignored(tmp_path: Path) -> None:
    folder = write(tmp_path, GROUPS, ignored=None)
    change(folder, "labels", 2, 3, 0)
    assert found(folder) == []


def test_the_test_split_is_checked_too(tmp_path: Path) -> None:
    folder = write(tmp_path, GROUPS)
    (folder / "train/all__inputs.npy").replace(folder / "kept.npy")
    np.save(folder / "train/all__inputs.npy", np.load(folder / "kept.npy"))
    path = folder / "test/all__inputs.npy"
    tokens = np.load(path)
    tokens[1, 0] = 6
    np.save(path, tokens)
    assert found(folder)[0].startswith("test/all__inputs.npy row 1: augmentation")


def test_a_mask_is_the_same_as_its_positions(tmp_path: Path) -> None:
    folder = write(tmp_path, GROUPS)
    change(folder, "inputs", 2, 0, 6)
    mask = np.array([True, False, False, False, False, False])
    assert found(folder, fixed=mask) == found(folder) != []
    for wrong in (mask[1:], [6], [-1]):
        with pytest.raises(ValueError, match=r"tokens$"):
            found(folder, fixed=wrong)


def test_twenty_rows_are_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    folder = write(tmp_path, [30])
    change(folder, "inputs", slice(3, 30), 0, 6)
    listed = found(folder)
    assert len(listed) == 21 and listed[-1].endswith("7 more rows like these")


def test_a_dataset_that_cannot_be_read_is_one_violation(tmp_path: Path) -> None:
    folder = write(tmp_path, GROUPS)
    (folder / "train/all__inputs.npy").unlink()
    (listed,) = found(folder)
    assert "readable" in listed and "train/all__inputs.npy: is missing" in listed
