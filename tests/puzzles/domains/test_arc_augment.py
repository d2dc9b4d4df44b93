"""Augmentations of ARC tasks: ids, hashes, draws."""

from typing import Any

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.puzzles.domains.arc_augment import (
    Augmentation,
    aug_id,
    augmentation,
    flat,
    is_base,
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
        *("<blank>", "<blank>_t1_0234567891", "a\n", "\n", "a\u2028b", "x" * 101),
        *("a_t1_0234567891\n", "a_t1_02345678٩1", "a_T1_0234567891", "a_t1-0234567891"),
        *("a__t1_0234567891", "_", "a_", "a_t_0234567891", "a_t11_0234567891"),
        *(None, 5, b"a"),
    ],
)
def test_another_text_is_no_id(text: Any) -> None:
    with pytest.raises(GristmillError, match="no id"):
        parse_id(text)


def test_the_bounds_of_an_id_are_ids() -> None:
    assert parse_id("x" * 100) == ("x" * 100, None)
    assert parse_id("a<") == ("a<", None)
    for symmetry in (0, 7):
        change = Augmentation(symmetry, "0987654321")
        assert parse_id(aug_id("x", change)) == ("x", change)


@pytest.mark.parametrize("base", ["", "a_b", "<a", "a_t1_0123456789", "x" * 101, "a\n"])
def test_an_id_that_could_not_be_parsed_is_not_made(base: str) -> None:
    assert not is_base(base)
    with pytest.raises(GristmillError, match="no id"):
        aug_id(base, CHANGE)


@pytest.mark.parametrize(
    "change", [Augmentation(8), Augmentation(-1), Augmentation(0, "123456789"), Augmentation(0, "")]
)
def test_an_id_of_no_augmentation_is_not_made(change: Augmentation) -> None:
    with pytest.raises(GristmillError, match="no id"):
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
