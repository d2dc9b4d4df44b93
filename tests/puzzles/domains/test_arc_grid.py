"""ARC grids as tokens and back, against a cell by cell oracle."""

import numpy as np
import pytest

from gristmill.puzzles.domains.arc_grid import checked_grid, decode, encode, read_answer
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


NO_GRIDS = {
    "two dimensions": np.zeros(3, np.uint8),
    r"int64 \(1, 1, 1\): it needs two": np.zeros((1, 1, 1), np.int64),
    r"uint8 \(0, 2\)": np.zeros((0, 2), np.uint8),
    r"uint8 \(2, 0\)": np.zeros((2, 0), np.uint8),
    "float64 .* integers": np.ones((2, 2)),
    "bool .* integers": np.ones((2, 2), np.bool_),
    "object": None,
    "is not a grid: <U4": "grid",
    "inhomogeneous": [[1, 2], [3]],
    r"\(31, 1\): it has at most 30 x 30": np.zeros((31, 1), np.uint8),
    r"\(1, 31\): it has at most 30 x 30": np.zeros((1, 31), np.uint8),
    "has 0 to 10: colours are 0 to 9": np.array([[10, 0]], np.uint8),
    "has -1 to 9: colours are 0 to 9": np.array([[9, -1]]),
}


@pytest.mark.parametrize("rule", NO_GRIDS)
def test_what_is_no_grid_is_refused(rule: str) -> None:
    for refused in (checked_grid, encode):
        with pytest.raises(ValueError, match=rule):
            refused(NO_GRIDS[rule])  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["uint8", "int64", ">i4", "uint64"])
def test_a_grid_of_any_integer_type_is_checked_and_encoded(dtype: str) -> None:
    grid = np.array([[0, 9, 1]], dtype)
    found = checked_grid(grid)
    assert found.dtype == np.uint8 and found.tolist() == [[0, 9, 1]]
    assert checked_grid([[0, 9, 1]]).tolist() == [[0, 9, 1]]
    for shape in ((30, 30), (1, 1)):
        assert checked_grid(np.full(shape, 9)).shape == shape
    assert encode(grid).tolist() == tokens(found, 0, 0)


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
    assert read_answer(np.zeros(900, np.uint8)) is None


def test_of_answers_that_are_equally_large_the_one_with_the_fewest_rows_is_read() -> None:
    cells = np.zeros((30, 30), np.int64)
    cells[0, :4] = cells[1, :2] = cells[2, :1] = cells[3, :1] = 4
    answer = read_answer(cells.reshape(-1))
    assert answer is not None and answer.shape == (1, 4)
    cells[2, :2] = 4
    answer = read_answer(cells.reshape(-1))
    assert answer is not None and answer.shape == (3, 2)


def _as_the_notebook_crops(cells: np.ndarray) -> tuple[int, int]:
    """The largest rectangle of colours as the original's notebook finds it, cell by cell."""
    most, size, width = 0, (0, 0), cells.shape[1]
    for height in range(1, cells.shape[0] + 1):
        for column in range(width):
            if not 2 <= cells[height - 1, column] <= 11:
                width = column
                break
        if height * width > most:
            most, size = height * width, (height, width)
    return size


def test_an_answer_is_the_one_of_the_notebook_whatever_is_predicted() -> None:
    chance = np.random.default_rng(0)
    shapes = set()
    for _ in range(300):
        cells = chance.integers(2, 12, (30, 30))
        holes = chance.integers(0, 900, chance.integers(0, 60))
        cells.reshape(-1)[holes] = chance.choice([-1, 0, 1, 12], len(holes))
        row, column = chance.integers(0, 30, 2).tolist() if chance.random() < 0.3 else (0, 0)
        answer = read_answer(cells.reshape(-1), row, column)
        size = (0, 0) if answer is None else answer.shape
        assert size == _as_the_notebook_crops(cells[row:, column:])
        if answer is not None:
            there = cells[row : row + size[0], column : column + size[1]]
            np.testing.assert_array_equal(answer, there - 2)
        shapes.add(size)
    assert len(shapes) > 100 and (0, 0) in shapes


def test_a_whole_canvas_of_colours_without_a_border_is_an_answer() -> None:
    answer = read_answer(np.full(900, 11))
    assert answer is not None and answer.shape == (30, 30) and set(answer.flat) == {9}
    answer = read_answer(np.full(900, 2), 29, 29)
    assert answer is not None and answer.tolist() == [[0]]


@pytest.mark.parametrize("token", [-1, 0, 1, 12, 300])
def test_a_token_that_is_no_colour_ends_an_answer(token: int) -> None:
    cells = np.full((30, 30), 3)
    cells[2, :] = cells[:, 5] = token
    answer = read_answer(cells.reshape(-1))
    assert answer is not None and answer.shape == (2, 5)


@pytest.mark.parametrize("place", [(-1, 0), (0, -1), (30, 0), (0, 30)])
def test_an_answer_outside_of_the_cells_is_refused(place: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not within 30 x 30"):
        read_answer(np.full(900, 3), *place)


@pytest.mark.parametrize(
    "wrong",
    [
        np.full(899, 3),
        np.full(901, 3),
        np.full((30, 30), 3),
        np.full(900, 3.0),
        np.full(900, True),
        np.full(0, 3),
    ],
)
def test_an_answer_of_other_tokens_is_refused(wrong: np.ndarray) -> None:
    for read in (read_answer, decode):
        with pytest.raises(ValueError, match=r"expected integers \(900,\)"):
            read(wrong)
