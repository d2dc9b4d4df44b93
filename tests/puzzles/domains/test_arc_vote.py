"""Answers in the frame of the task, and their votes."""

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.puzzles.domains.arc_augment import Augmentation, aug_id
from gristmill.puzzles.domains.arc_vote import arc_vote, inverse

RIGHT = np.array([[0, 1], [2, 3], [4, 9]], np.uint8)
WRONG = np.array([[5]], np.uint8)
CHANGES = [Augmentation(k, c) for k, c in ((1, "0918273645"), (3, "0123456789"), (7, "0987654321"))]


def test_inverse_gives_the_grid_of_the_task() -> None:
    for change in CHANGES:
        np.testing.assert_array_equal(inverse(aug_id("a", change), change.apply(RIGHT)), RIGHT)
    np.testing.assert_array_equal(inverse("a", RIGHT), RIGHT)


def test_equal_answers_of_several_puzzles_win() -> None:
    answers = [("a", WRONG)] + [(aug_id("a", change), change.apply(RIGHT)) for change in CHANGES]
    for order in (answers, answers[::-1]):
        ranked = arc_vote(order)
        assert [votes for _, votes in ranked] == [3, 1]
        np.testing.assert_array_equal(ranked[0][0], RIGHT)
        np.testing.assert_array_equal(ranked[1][0], WRONG)


def test_a_tie_does_not_depend_on_the_order_of_answers() -> None:
    grids = [RIGHT, RIGHT[:, ::-1], RIGHT.reshape(2, 3), WRONG]
    for order in (grids, grids[::-1]):
        ranked = [grid.tolist() for grid, _ in arc_vote([("a", grid) for grid in order])]
        assert ranked == [each.tolist() for each in (WRONG, grids[2], RIGHT, grids[1])]


def test_nothing_gives_no_answer_and_two_tasks_are_refused() -> None:
    assert arc_vote([]) == []
    with pytest.raises(GristmillError, match="several tasks: a, b"):
        arc_vote([("b", WRONG), ("a", WRONG)])
