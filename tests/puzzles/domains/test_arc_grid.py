"""ARC grids as tokens and back, against a cell by cell oracle."""

import numpy as np
import pytest

from gristmill.puzzles.domains.arc_grid import decode, encode, read_answer
from tests.puzzles.arc_oracle import tokens

SHAPES = [(1, 1), (1, 30), (30, 1), (30, 30), (3, 4), (29, 30), (30, 29), (29, 29)]


def grid_of(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, 10, shape, np.uint8)


def corners(shape: tuple[int, int]) -> set[tuple[int, int]]:
    rows, columns = {0, (30 - shape[0]) // 2, 30 - shape[0]}, {0, 30 - shape[1]}
    return {(row, column) for row in rows for column in columns}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_grid_anywhere_is_encoded_by_the_rules_and_decoded_again(shape: tuple[int, int]) -> None:
    grid = grid_of(shape)
    for row, column in corners(shape):
        made = encode(grid, row, column)
        assert made.dtype == np.uint8
        assert made.tolist() == tokens(grid, row, column)
        found = decode(made.astype(np.int32))
        np.testing.assert_array_equal(found.grid, grid)
        assert found.grid.dtype == np.uint8 and (found.row, found.column) == (row, column)


@pytest.mark.parametrize("place", [(28, 0), (0, 27), (-1, 0), (0, -1)])
def test_a_grid_that_does_not_fit_is_refused(place: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="30 x 30"):
        encode(grid_of((3, 4)), *place)


@pytest.mark.parametrize("grid", [np.zeros(3), np.zeros((0, 2)), np.full((1, 1), 10)])
def test_what_is_no_grid_is_refused(grid: np.ndarray) -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        encode(grid.astype(np.uint8))


@pytest.mark.parametrize(
    ("cell", "token", "rule"),
    [
        (0, 12, "a token"),
        (0, -1, "a token"),
        (0, 1, "rectangle"),
        (2, 0, "border"),
        (2, 5, "rectangle"),
        (62, 1, "border"),
        (899, 1, "border"),
        (899, 4, "rectangle"),
    ],
)
def test_tokens_that_are_not_one_grid_are_refused(cell: int, token: int, rule: str) -> None:
    made = encode(np.ones((2, 2), np.uint8)).astype(np.int32)
    made[cell] = token
    with pytest.raises(ValueError, match=rule):
        decode(made)


def test_tokens_without_colours_or_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="no cell"):
        decode(np.zeros(900, np.uint8))
    with pytest.raises(ValueError, match="expected"):
        decode(np.zeros((30, 30), np.uint8))


def test_an_answer_is_read_whatever_is_predicted_outside_of_its_border() -> None:
    grid = grid_of((3, 4))
    for row, column in ((0, 0), (5, 7), (27, 26)):
        made = encode(grid, row, column).reshape(30, 30)
        made[made == 0] = 9
        answer = read_answer(made.reshape(-1), row, column)
        assert answer is not None and answer.dtype == np.uint8
        if (row, column) != (27, 26):
            made[row + 3, column + 4] = 9
        np.testing.assert_array_equal(answer, grid)


def test_an_answer_is_the_largest_rectangle_from_its_corner() -> None:
    cells = np.zeros((30, 30), np.int64)
    cells[0, :5] = 4
    cells[:4, :2] = 5
    answer = read_answer(cells.reshape(-1))
    assert answer is not None and answer.tolist() == [[3, 3]] * 4
    cells[:] = 0
    cells[0, :4] = cells[1, :2] = 4
    answer = read_answer(cells.reshape(-1))
    assert answer is not None and answer.shape == (2, 2)
    assert read_answer(np.zeros(900, np.uint8)) is None
