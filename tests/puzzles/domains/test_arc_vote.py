"""Answers in the frame of the task, and their votes."""

from typing import Any

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


def test_answers_to_one_puzzle_are_as_many_votes_of_any_integer_type() -> None:
    answers = [("a", RIGHT), ("a", RIGHT.astype(np.int64)), ("a", RIGHT.tolist()), ("a", WRONG)]
    ranked = arc_vote(answers)  # type: ignore[arg-type]
    assert [(grid.tolist(), votes) for grid, votes in ranked] == [(RIGHT.tolist(), 3), ([[5]], 1)]
    assert all(grid.dtype == np.uint8 for grid, _ in ranked)


def test_grids_of_equal_cells_and_other_shapes_are_different_answers() -> None:
    ranked = arc_vote([("a", WRONG.repeat(2, 1)), ("a", WRONG.repeat(2, 0))])
    assert [(grid.shape, votes) for grid, votes in ranked] == [((1, 2), 1), ((2, 1), 1)]


def test_an_answer_without_a_grid_is_no_vote() -> None:
    assert arc_vote([("a", None)]) == []
    ((grid, votes),) = arc_vote([("a", None), ("a_t1_0918273645", None), ("a", WRONG)])
    assert (grid.tolist(), votes) == ([[5]], 1)
    with pytest.raises(GristmillError, match="several tasks: a, b"):
        arc_vote([("b", None), ("a", WRONG)])
    with pytest.raises(GristmillError, match="no id"):
        arc_vote([("<blank>", None)])


@pytest.mark.parametrize(
    "grid",
    [
        np.array([[10]]),
        np.array([[-1]]),
        np.array([[1.0]]),
        np.array([[True]]),
        np.zeros((0, 3), np.uint8),
        np.zeros(9, np.uint8),
        np.zeros((1, 31), np.uint8),
        [[1, 2], [3]],
        "[[1]]",
    ],
)
def test_an_answer_that_is_no_grid_is_refused_with_its_id(grid: Any) -> None:
    for identifier in ("a", "a_t1_0918273645"):
        with pytest.raises(GristmillError, match=f"the answer to {identifier} is no grid: "):
            inverse(identifier, grid)
        with pytest.raises(GristmillError, match=f"the answer to {identifier} is no grid: "):
            arc_vote([(identifier, grid)])


def test_nothing_gives_no_answer_and_two_tasks_are_refused() -> None:
    assert arc_vote([]) == []
    with pytest.raises(GristmillError, match="several tasks: a, b"):
        arc_vote([("b", WRONG), ("a", WRONG)])
