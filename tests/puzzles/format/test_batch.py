"""A batch: shapes that do not fit together are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gristmill.puzzles.format.batch import Batch

WHOLE: dict[str, Any] = {
    "inputs": np.ones((3, 4), np.uint8),
    "labels": np.ones((3, 4), np.uint8),
    "origins": np.zeros((3, 3), np.int32),
    "examples": np.array([1, 2], np.int32),
    "puzzles": np.array([2], np.int32),
    "names": ("a", "b"),
}


def test_a_batch_may_be_empty_or_without_names() -> None:
    Batch(**{**WHOLE, "names": None})
    none = {name: array[:0] for name, array in WHOLE.items()}
    assert len(Batch(**none).inputs) == 0


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"labels": np.ones((3, 5), np.uint8)}, "differ"),
        ({"labels": np.ones((3, 4), np.int32)}, "both be uint8"),
        ({"inputs": np.ones((3, 4)), "labels": np.ones((3, 4))}, "both be uint8"),
        ({"origins": np.zeros((2, 3), np.int32)}, "origins"),
        ({"origins": np.zeros((3, 3), np.int64)}, r"origins int64 \(3, 3\), expected int32"),
        ({"examples": np.array([0, 3], np.int32)}, "needs an example"),
        ({"puzzles": np.array([0, 2], np.int32)}, "needs an example"),
        ({"examples": np.array([1, 1], np.int32)}, "add up"),
        ({"puzzles": np.array([1], np.int32)}, "add up"),
        ({"names": ("a",)}, "one entry for each puzzle"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Batch(**{**WHOLE, **change})
