"""Augmentations of Sudokus are drawn once more as the builder draws them, and compared."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.puzzles.domains.sudoku.symmetry import draw
from gristmill.puzzles.laws.sudoku_draws import Redraws
from gristmill.puzzles.laws.sudoku_kernels import LIMIT, WORDS, drawn
from gristmill.puzzles.read.rows import SetArrays


@pytest.mark.parametrize("limit", [LIMIT, np.uint64(0), np.uint64(1 << 63)])
def test_a_draw_is_that_of_the_builder(limit: np.uint64) -> None:
    """A limit of 0 leaves every draw to the builder's function, the middle one most of them."""
    for number in range(1, 200):
        key = np.uint64(number * 0x9E3779B97F4A7C15 % (1 << 64))
        results = []
        for is_ours in (True, False):
            places = np.empty(10, np.uint8), np.empty(9, np.int64), np.empty(9, np.int64)
            if is_ours:
                turned = drawn(key, number, limit, np.empty(WORDS, np.uint64), *places)
            else:
                turned = draw(np.zeros(1, np.uint64), key, number, *places)
            results.append((bool(turned), *(place.tolist() for place in places)))
        assert results[0] == results[1]


def test_words_that_a_draw_may_skip_are_above_the_limit() -> None:
    most = (1 << 64) - 1
    assert all(int(LIMIT) <= most - most % bound for bound in range(2, 10))


def redraws() -> Redraws:
    """Two groups of five rows; rows 1, 3 and 4 are equal, and so are row 2 and row 7."""
    inputs = np.arange(10)[:, None].repeat(81, axis=1)
    inputs[[3, 4]], inputs[7] = 1, 2
    indices, groups = np.arange(11), np.array([0, 5, 10])
    arrays = SetArrays(inputs, inputs, np.zeros(10), indices, groups, np.zeros((10, 3)))
    return Redraws(arrays, np.array([0, 5]), 42)


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 10])
def test_an_example_that_its_group_has_twice_is_found_in_batches_of_any_size(step: int) -> None:
    marks = np.array([10, 11, 12, 11, 11, 13, 14, 15, 0, 0], np.uint64)
    seen = redraws()
    found = [
        pair
        for first in range(0, 10, step)
        for pair in seen.repeated(first, marks[first : first + step])
    ]
    assert found == [(3, 1), (4, 1)]


def test_equal_marks_of_different_examples_are_no_repeat() -> None:
    marks = np.array([10, 11, 11, 12, 13, 14, 15, 16, 17, 18], np.uint64)
    assert [*redraws().repeated(0, marks)] == []
    assert [*redraws().repeated(0, np.empty(0, np.uint64))] == []
