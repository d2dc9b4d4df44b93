"""Augmentations of ARC tasks: ids, hashes, draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.puzzles.domains.arc_augment import (
    Augmentation,
    arc_vote,
    aug_id,
    augmentation,
    flat,
    inverse,
    parse_id,
    task_hash,
)
from tests.puzzles import arc_oracle

GRID = np.array([[0, 1, 2], [3, 9, 9]], np.uint8)
CHANGE = Augmentation(1, "0234567891")


def test_an_augmentation_changes_colours_then_turns() -> None:
    assert CHANGE.apply(GRID).tolist() == [[3, 1], [2, 1], [0, 4]]


@pytest.mark.parametrize("symmetry", range(8))
def test_undo_gives_the_grid_back(symmetry: int) -> None:
    change = Augmentation(symmetry, "0312547698")
    after = change.apply(GRID)
    np.testing.assert_array_equal(
        after, arc_oracle.turned(np.array(list("0312547698"), np.uint8)[GRID], symmetry)
    )
    np.testing.assert_array_equal(change.undo(after), GRID)


def test_an_id_is_made_and_parsed() -> None:
    assert aug_id("007bbfb7", CHANGE) == "007bbfb7_t1_0234567891"
    assert parse_id("007bbfb7_t1_0234567891") == ("007bbfb7", CHANGE)
    assert parse_id("named-cc") == ("named-cc", None)


@pytest.mark.parametrize(
    "text",
    [
        *("", "_t1_0234567891", "a_t8_0234567891", "a_t1_1234567890", "a_t1_0234567899"),
        *(
            "a_t1_023456789",
            "a_t1_02345678911",
            "a_b",
            "a_t1",
            "a_t1_0234567891_",
            "a_t1_0234567890",
        ),
        *("<blank>", "<blank>_t1_0234567891", "a\n", "\n", "a\u2028b", "x" * 256),
        *("a_t1_0234567891\n", "a_t1_02345678٩1", "a_T1_0234567891", "a_t1-0234567891"),
        *("a__t1_0234567891", "_", "a_", "a_t_0234567891", "a_t11_0234567891"),
        *(None, 5, b"a"),
    ],
)
def test_another_text_is_no_id(text: Any) -> None:
    with pytest.raises(GristmillError, match="not an id"):
        parse_id(text)


def test_the_bounds_of_an_id_are_ids() -> None:
    assert parse_id("x" * 100) == ("x" * 100, None)
    assert parse_id("a<") == ("a<", None)
    for symmetry in (0, 7):
        change = Augmentation(symmetry, "0987654321")
        assert parse_id(aug_id("x", change)) == ("x", change)


@pytest.mark.parametrize("base", ["", "a_b", "<a", "a_t1_0123456789", "x" * 256, "a\n"])
def test_an_id_that_could_not_be_parsed_is_not_made(base: str) -> None:
    with pytest.raises(GristmillError, match="not an id"):
        aug_id(base, CHANGE)


@pytest.mark.parametrize(
    "change", [Augmentation(8), Augmentation(-1), Augmentation(0, "123456789"), Augmentation(0, "")]
)
def test_an_id_of_no_augmentation_is_not_made(change: Augmentation) -> None:
    with pytest.raises(GristmillError, match="not an id"):
        aug_id("a", change)


def test_the_hash_of_a_task_does_not_know_the_order_of_pairs() -> None:
    pairs = [(GRID, GRID.T), (GRID[:1], GRID)]
    assert task_hash(pairs) == task_hash(pairs[::-1]) == arc_oracle.hashed(pairs)
    assert task_hash(pairs) != task_hash([(GRID.T, GRID), (GRID[:1], GRID)])
    assert task_hash([(GRID, GRID)]) != task_hash([(GRID.reshape(3, 2), GRID)])


def test_the_hash_of_a_pair_is_pinned() -> None:
    pairs = [(np.array([[1, 2]], np.uint8), np.array([[3]], np.uint8))]
    assert task_hash(pairs) == "d4002129d1552864352a14b4a294b7864f709b57c1781f2d40346d113b4cf34e"


def test_a_draw_is_the_one_of_the_oracle() -> None:
    for number in range(1, 30):
        symmetry, colours = arc_oracle.drawn(42, "007bbfb7", number)
        expected = Augmentation(symmetry, "".join(map(str, colours)))
        assert augmentation(42, "007bbfb7", number) == expected
    assert augmentation(42, "007bbfb7", 0) == Augmentation()


def test_the_arrays_of_a_task_hold_its_grids_in_order() -> None:
    task = flat([(GRID, GRID[:1]), (GRID.T, GRID)])
    assert task.starts.tolist() == [0, 6, 9, 15]
    assert task.shapes.tolist() == [[2, 3], [1, 3], [3, 2], [2, 3]]
    assert task.cells.tolist() == [*GRID.flat, *GRID[0], *GRID.T.flat, *GRID.flat]


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
    with pytest.raises(GristmillError, match="not an id"):
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
        with pytest.raises(GristmillError, match=f"the answer to {identifier} is not a grid: "):
            inverse(identifier, grid)
        with pytest.raises(GristmillError, match=f"the answer to {identifier} is not a grid: "):
            arc_vote([(identifier, grid)])


def test_nothing_gives_no_answer_and_two_tasks_are_refused() -> None:
    assert arc_vote([]) == []
    with pytest.raises(GristmillError, match="several tasks: a, b"):
        arc_vote([("b", WRONG), ("a", WRONG)])
