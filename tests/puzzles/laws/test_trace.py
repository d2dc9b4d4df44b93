"""The trace: an example with a wrong origin is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.puzzles.builders.dataset import Plan, build_dataset
from gristmill.puzzles.format.batch import Batch
from gristmill.puzzles.format.metadata import Encoding
from gristmill.puzzles.format.part_file import Sets
from gristmill.puzzles.format.sources import SourceFile
from gristmill.puzzles.laws.trace import trace_laws
from tests.puzzles.toy import ToyConfig


def _make(split: str) -> dict[Sets, Batch]:
    """Two groups: three puzzles of two examples, and two puzzles of one."""
    tokens = np.ones((8, 2), np.uint8)
    origins = [
        [0, 4, 0],
        [0, 5, 0],
        [0, 4, 2],
        [0, 5, 2],
        [0, 4, 7],
        [0, 5, 7],
        [1, 0, 0],
        [1, 0, 1],
    ]
    return {
        (split, "all"): Batch(
            tokens,
            tokens,
            np.array(origins, np.int32),
            examples=np.array([2, 2, 2, 1, 1], np.int32),
            puzzles=np.array([3, 2], np.int32),
        )
    }


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    files = [SourceFile(f"toy/{name}", "00" * 32) for name in "ab"]
    tasks = [(split, split) for split in ("train", "test")]
    plan = Plan("toy", Encoding(2, 2), ToyConfig(), tasks, _make, files)
    build_dataset(plan, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("row", "column", "value", "found"),
    [
        (7, 0, 2, "not one of 2"),
        (7, 0, -1, "not one of 2"),
        (7, 1, -1, "negative"),
        (6, 2, -1, "negative"),
        (3, 2, 3, "its puzzle has another draw"),
        (5, 0, 1, "its group has another file"),
        (5, 1, 4, "has another row"),
        (6, 2, 1, "begins with draw 0"),
        (7, 2, 0, "has a later one"),
    ],
)
def test_a_wrong_origin_is_found(
    row: int, column: int, value: int, found: str, dataset: Path
) -> None:
    assert list(trace_laws(dataset)) == []
    path = dataset / "trace/train/all.npy"
    origins = np.load(path)
    origins[row, column] = value
    np.save(path, origins)
    violations = list(trace_laws(dataset))
    assert any(found in violation.found for violation in violations)
    assert all(violation.where.startswith("trace/train/all.npy row ") for violation in violations)


def test_puzzles_of_other_sizes_in_a_group_are_found(dataset: Path) -> None:
    np.save(dataset / "train/all__puzzle_indices.npy", np.array([0, 2, 3, 6, 7, 8], np.int32))
    assert any("other sizes" in violation.found for violation in trace_laws(dataset))


def test_a_missing_trace_is_found(dataset: Path) -> None:
    (dataset / "trace/train/all.npy").unlink()
    assert [violation.found for violation in trace_laws(dataset)] == ["is missing"]
    (dataset / "trace/sources.json").unlink()
    (violation,) = trace_laws(dataset)
    assert (violation.law, violation.found) == (
        "readable",
        f"{dataset / 'trace/sources.json'}: is missing",
    )
