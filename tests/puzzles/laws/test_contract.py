"""The contract: what breaks it is found, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.puzzles.build.dataset import build_dataset
from gristmill.puzzles.laws.contract import contract_laws
from tests.puzzles.toy import plan


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    build_dataset(plan(), tmp_path / "out")
    return tmp_path / "out"


def _array(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        array = np.load(folder / name)
        np.save(folder / name, change(array))

    return apply


def _set(name: str, place: int | tuple[int, int], value: int) -> Callable[[Path], None]:
    def change(array: Any) -> Any:
        array[place] = value
        return array

    return _array(name, change)


def _metadata(split: str, **values: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / split / "dataset.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return apply


def _identifiers(*listed: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "identifiers.json").write_text(json.dumps(listed)) and None


NAMES = ["<blank>", *(f"p{k}" for k in range(12))]


@pytest.mark.parametrize(
    ("change", "law", "found"),
    [
        (_set("train/all__inputs.npy", (17, 4), 10), "tokens", "row 17"),
        (_set("train/all__labels.npy", (0, 0), -1), "tokens", "row 0"),
        (_set("test/all__labels.npy", (2, 4), 10), "tokens", "row 2"),
        (_set("train/all__puzzle_indices.npy", 0, 1), "indices", "begin at 0"),
        (_set("train/all__puzzle_indices.npy", -1, 17), "indices", "end at 18"),
        (_set("train/all__puzzle_indices.npy", 1, 3), "indices", "entry 2"),
        (_set("train/all__group_indices.npy", 6, 11), "indices", "end at 12"),
        (_set("train/all__puzzle_identifiers.npy", 0, 13), "identifiers", "0 to 12"),
        (_set("train/all__puzzle_identifiers.npy", 0, -1), "identifiers", "0 to 12"),
        (_array("train/all__group_indices.npy", lambda a: a.astype(np.int64)), "dtype", "int64"),
        (_array("train/all__inputs.npy", lambda a: a.astype(np.int64)), "dtype", "int64"),
        (_array("train/all__inputs.npy", lambda a: a.astype(">i4")), "dtype", ">i4"),
        (_array("test/all__puzzle_indices.npy", lambda a: a.astype(">i4")), "dtype", ">i4"),
        (_array("train/all__inputs.npy", lambda a: a[:, :4]), "readable", "another shape"),
        (_array("train/all__inputs.npy", lambda a: a.astype(float)), "readable", "integers"),
        (_array("train/all__inputs.npy", lambda a: a.ravel()), "readable", "dimensions"),
        (_array("train/all__puzzle_indices.npy", lambda a: a[:-1]), "readable", "one entry more"),
        (_metadata("train", total_groups=5), "metadata", "total_groups 5, not 6"),
        (_metadata("train", mean_puzzle_examples=1.0), "metadata", "mean_puzzle_examples 1.0"),
        (_metadata("test", seq_len=6), "splits_agree", "5 in train, 6 in test"),
        (_metadata("test", pad_id=1), "splits_agree", "0 in train, 1 in test"),
        (_metadata("test", ignore_label_id=None), "splits_agree", "None in test"),
        (_metadata("train", sets=["none"]), "readable", "missing"),
        (_identifiers("<blank>", "p0"), "identifiers", "2 names"),
        (_identifiers(*NAMES[1:], "x"), "identifiers", "begin with"),
        (_identifiers(*NAMES[:-1], "p0"), "identifiers", "twice"),
        (lambda folder: (folder / "test/dataset.json").unlink(), "readable", "missing"),
        (lambda folder: (folder / "identifiers.json").write_text("{"), "readable", "JSON"),
        (lambda folder: (folder / "train/all__inputs.npy").unlink(), "readable", "missing"),
    ],
)
def test_what_breaks_the_contract_is_found(
    change: Callable[[Path], None], law: str, found: str, dataset: Path
) -> None:
    assert list(contract_laws(dataset)) == []
    change(dataset)
    violations = list(contract_laws(dataset))
    assert law in {violation.law for violation in violations}
    assert any(found in str(violation) for violation in violations if violation.law == law)


def test_a_cut_or_damaged_file_is_found(dataset: Path) -> None:
    path = dataset / "train/all__inputs.npy"
    whole = path.read_bytes()
    broken = (
        whole[:-1],
        whole[:40],
        b"",
        b"x" * 8000,
        whole.replace(b"i4", b"O4"),
        b"PK\x03\x04" + bytes(99),
        whole.replace(b"'<i4'", b"'<i4 "),
    )
    for text in broken:
        path.write_bytes(text)
        assert [violation.law for violation in contract_laws(dataset)] == ["readable"]
