"""Augmentations of Sudokus are drawn once more as the builder draws them."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.puzzles.domains.sudoku.symmetry import draw
from gristmill.puzzles.laws.sudoku_draws import LIMIT, WORDS, drawn


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
