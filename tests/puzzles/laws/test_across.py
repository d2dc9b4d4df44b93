"""Test puzzles that training of another dataset has: each kind up to its own symmetries."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.domains.sudoku_symmetry import augmentation
from gristmill.puzzles.laws.across import twins
from tests.puzzles import small_datasets
from tests.puzzles.small_datasets import SMALL, Small, write
from tests.puzzles.sudoku import applied

GRID = {"height": 2, "width": 2, "alphabet": "abc", "values": None, "dihedral": True}


def _grid() -> Small:
    return replace(
        small_datasets.other(4), kind="grid", config=GRID, inputs=np.array([[1, 2, 3, 3]] * 2)
    )


def _turned(small: Small) -> Small:
    """The first puzzle of each group after a symmetry that its kind has."""
    inputs, labels = small.inputs.copy(), small.labels.copy()
    if small.kind == "arc":
        return replace(small, inputs=inputs[[2, 3, 0, 1]], labels=labels[[2, 3, 0, 1]])
    if small.kind == "sudoku":
        change = augmentation(1, "train:0", 3)
        inputs, labels = (applied(change, each[0] - 1)[None] + 1 for each in (inputs, labels))
    elif small.kind == "maze":
        inputs, labels = inputs[::-1], labels[::-1]
    elif small.kind == "domino":
        inputs[0, 56:64] = np.roll(inputs[0, 56:64], 2)
    elif small.kind == "grid":
        inputs, labels = (
            each.reshape(-1, 2, 2)[:, ::-1].reshape(-1, 4) for each in (inputs, labels)
        )
    return replace(small, inputs=inputs, labels=labels)


def _changed(small: Small) -> Small:
    """Other puzzles of the kind."""
    inputs = small.inputs.copy()
    if small.kind == "domino":
        inputs[:, 56:58] = 7  # another tile of the first hand
    else:
        at = inputs.shape[1] - 1 if small.kind != "arc" else 0
        inputs[:, at] = np.where(inputs[:, at] == 2, 3, 2)
    return replace(small, inputs=inputs)


@pytest.mark.parametrize("make", [*SMALL.values(), _grid], ids=[*SMALL, "grid"])
@pytest.mark.parametrize(("change", "is_leak"), [(_turned, True), (_changed, False)])
def test_a_test_puzzle_that_another_dataset_trains_on_is_found_up_to_symmetry(
    make: Callable[[], Small], change: Callable[[Small], Small], is_leak: bool, tmp_path: Path
):
    small = make()
    tested = write(tmp_path / "tested", _changed(small), change(small))
    trained = write(tmp_path / "trained", small, _changed(small))
    found = [*twins(tested, [tested, trained])]
    assert bool(found) == is_leak
    assert not found or found[0] == ("test/all row 0", trained, "train/all row 0")


def test_kinds_are_not_compared_and_damage_is_named(tmp_path: Path):
    mazes, sudokus = (write(tmp_path / name, SMALL[name]()) for name in ("maze", "sudoku"))
    assert [*twins(mazes, [sudokus])] == []
    other = write(tmp_path / "other", SMALL["maze"]())
    assert len([*twins(mazes, [other])]) == 1
    (other / "train/all__labels.npy").write_bytes(b"x")
    with pytest.raises(BadInput, match="all__labels"):
        [*twins(mazes, [other])]
