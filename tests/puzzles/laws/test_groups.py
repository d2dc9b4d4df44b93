"""Rows that their group has twice, in batches of any size."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.puzzles.laws.groups import Repeats


def repeats() -> Repeats:
    """Two groups of five rows; rows 1, 3 and 4 are equal, and so are row 2 and row 7."""
    inputs = np.arange(10)[:, None].repeat(81, axis=1)
    inputs[[3, 4]], inputs[7] = 1, 2
    return Repeats((inputs, inputs), np.array([0, 5]))


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 10])
def test_an_example_that_its_group_has_twice_is_found_in_batches_of_any_size(step: int) -> None:
    marks = np.array([10, 11, 12, 11, 11, 13, 14, 15, 0, 0], np.uint64)
    seen = repeats()
    found = [
        pair for first in range(0, 10, step) for pair in seen.of(first, marks[first : first + step])
    ]
    assert found == [(3, 1), (4, 1)]


def test_equal_marks_of_different_examples_are_no_repeat() -> None:
    marks = np.array([10, 11, 11, 12, 13, 14, 15, 16, 17, 18], np.uint64)
    assert [*repeats().of(0, marks)] == []
    assert [*repeats().of(0, np.empty(0, np.uint64))] == []
