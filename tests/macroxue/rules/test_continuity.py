"""Whether games are whole: by their first board, and by what their rewards sum to."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.macroxue.rules.continuity import fresh, lacks_points


@pytest.mark.parametrize(
    ("tiles", "new"),
    [([1, 1], True), ([1, 2], True), ([2, 3], False), ([1], False), ([1] * 3, False)],
)
def test_a_new_game_has_two_tiles_of_rank_1_or_2(tiles: list[int], new: bool) -> None:
    assert fresh(np.array(tiles + [0] * (16 - len(tiles)), np.uint8)) == new


@pytest.mark.parametrize(
    ("tiles", "points", "score", "lacks"),
    [
        ([1, 1], 100, 100, False),
        ([1, 1], 96, 100, True),
        # A tile of rank 3 was made of two tiles of rank 2 (8 points) or of four of rank 1 (16).
        ([3, 1, 1], 100, 108, False),
        ([3, 1, 1], 100, 116, False),
        ([3, 1, 1], 100, 107, True),
        ([3, 1, 1], 100, 117, True),
        ([3, 1, 1], 100, 99, True),
    ],
)
def test_a_late_start_has_earned_what_its_tiles_can_be_worth(
    tiles: list[int], points: int, score: int, lacks: bool
) -> None:
    first = np.array(tiles + [0] * (16 - len(tiles)), np.uint8)
    assert lacks_points(first, points, score) == lacks
