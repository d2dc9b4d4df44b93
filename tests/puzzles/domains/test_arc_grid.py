"""ARC grids as tokens and back, against a cell by cell oracle."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.puzzles.domains.arc_grid import (
    Augmentation,
    arc_vote,
    aug_id,
    checked_grid,
    decode,
    encode,
    flat,
    inverse,
    parse_id,
    read_answer,
    task_hash,
)
from gristmill.puzzles.domains.arc_kernels import canonical_pair, kept_draws
from gristmill.puzzles.domains.randomness import source_key
from tests.puzzles import arc_oracle, arc_tasks
from tests.puzzles.arc_oracle import tokens

SHAPES = [(1, 1), (1, 30), (30, 1), (30, 30), (3, 4), (29, 30), (30, 29), (29, 29)]


def grid_of(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, 10, shape, np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_grid_anywhere_is_encoded_by_the_rules_and_decoded_again(shape: tuple[int, int]) -> None:
    grid = grid_of(shape)
    rows, columns = {0, (30 - shape[0]) // 2, 30 - shape[0]}, {0, 30 - shape[1]}
    for row, column in {(row, column) for row in rows for column in columns}:
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


NO_GRIDS: dict[str, Any] = {
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
            refused(NO_GRIDS[rule])


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


def test_tokens_without_colours_are_refused() -> None:
    with pytest.raises(ValueError, match="no cell"):
        decode(np.zeros(900, np.uint8))


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


def _predicted() -> Iterator[tuple[np.ndarray, int, int]]:
    """Cells and the place of the answer: ties and edges, then what chance predicts."""
    for token in (-1, 0, 1, 12, 300):  # it ends an answer
        cells = np.full((30, 30), 3)
        cells[2, :] = cells[:, 5] = token
        yield cells, 0, 0
    cells = np.zeros((30, 30), np.int64)
    yield cells.copy(), 0, 0
    cells[0, :4] = cells[1, :2] = cells[2, :1] = cells[3, :1] = 4
    yield cells.copy(), 0, 0  # of 1 x 4, 2 x 2 and 4 x 1 the one with the fewest rows
    cells[2, :2] = 4
    yield cells.copy(), 0, 0
    yield np.full((30, 30), 11), 0, 0  # the whole canvas without a border
    yield np.full((30, 30), 2), 29, 29
    chance = np.random.default_rng(0)
    for _ in range(300):
        cells = chance.integers(2, 12, (30, 30))
        holes = chance.integers(0, 900, chance.integers(0, 60))
        cells.reshape(-1)[holes] = chance.choice([-1, 0, 1, 12], len(holes))
        row, column = chance.integers(0, 30, 2).tolist() if chance.random() < 0.3 else (0, 0)
        yield cells, row, column


def test_an_answer_is_the_one_of_the_notebook_whatever_is_predicted() -> None:
    shapes = []
    for cells, row, column in _predicted():
        answer = read_answer(cells.reshape(-1), row, column)
        size = (0, 0) if answer is None else answer.shape
        assert size == _as_the_notebook_crops(cells[row:, column:])
        if answer is not None:
            there = cells[row : row + size[0], column : column + size[1]]
            np.testing.assert_array_equal(answer, there - 2)
        shapes.append(size)
    assert shapes[:10] == [(2, 5)] * 5 + [(0, 0), (1, 4), (3, 2), (30, 30), (1, 1)]
    assert len(set(shapes)) > 100


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


@pytest.mark.parametrize(
    ("base", "change"),
    [
        *((base, CHANGE) for base in ("", "a_b", "<a", "a_t1_0123456789", "x" * 256, "a\n")),
        *(("a", Augmentation(symmetry)) for symmetry in (8, -1)),
        *(("a", Augmentation(0, colours)) for colours in ("123456789", "")),
    ],
)
def test_an_id_that_could_not_be_parsed_is_not_made(base: str, change: Augmentation) -> None:
    with pytest.raises(GristmillError, match="not an id"):
        aug_id(base, change)


def test_the_hash_of_a_task_does_not_know_the_order_of_pairs() -> None:
    pairs = [(GRID, GRID.T), (GRID[:1], GRID)]
    assert task_hash(pairs) == task_hash(pairs[::-1]) == arc_oracle.hashed(pairs)
    assert task_hash(pairs) != task_hash([(GRID.T, GRID), (GRID[:1], GRID)])
    assert task_hash([(GRID, GRID)]) != task_hash([(GRID.reshape(3, 2), GRID)])


def test_the_hash_of_a_pair_is_pinned() -> None:
    pairs = [(np.array([[1, 2]], np.uint8), np.array([[3]], np.uint8))]
    assert task_hash(pairs) == "d4002129d1552864352a14b4a294b7864f709b57c1781f2d40346d113b4cf34e"


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
    assert arc_vote([]) == arc_vote([("a", None)]) == []
    ((grid, votes),) = arc_vote([("a", None), ("a_t1_0918273645", None), ("a", WRONG)])
    assert (grid.tolist(), votes) == ([[5]], 1)
    with pytest.raises(GristmillError, match="several tasks: a, b"):
        arc_vote([("b", None), ("a", WRONG)])
    with pytest.raises(GristmillError, match="not an id"):
        arc_vote([("<blank>", None)])


@pytest.mark.parametrize("rule", NO_GRIDS)
def test_an_answer_that_is_no_grid_is_refused_with_its_id(rule: str) -> None:
    for identifier in ("a", "a_t1_0918273645"):
        refusal = f"the answer to {identifier} is not a grid: "
        with pytest.raises(GristmillError, match=refusal):
            inverse(identifier, NO_GRIDS[rule])
        if NO_GRIDS[rule] is not None:  # it is no vote
            with pytest.raises(GristmillError, match=refusal):
                arc_vote([(identifier, NO_GRIDS[rule])])


NUMBERS = np.array([[[k % 10 for k in range(12)]]], np.uint8).reshape(3, 4)


def pairs_of(seed: int, count: int, colours: int, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    made = [arc_tasks.pair(seed + k, colours, most) for k in range(count)]
    return [(np.array(p["input"], np.uint8), np.array(p["output"], np.uint8)) for p in made]


@pytest.mark.parametrize(
    ("count", "colours", "most"), [(3, 9, 5), (2, 2, 3), (1, 2, 1), (4, 2, 1), (2, 3, 2), (3, 1, 3)]
)
def test_the_kept_draws_are_those_that_sha256_keeps(count: int, colours: int, most: int) -> None:
    # Small grids of few colours repeat, so that most draws are duplicates.
    for seed in range(2):
        pairs = pairs_of(1000 * seed + 7, count, colours, most)
        expected = arc_oracle.group(5, f"t{seed}", pairs, 60)
        key = np.uint64(source_key(5, "arc", f"t{seed}"))
        numbers, symmetries, colour_maps = kept_draws(key, 60, 300, *flat(pairs))
        assert numbers.tolist() == [number for number, _, _ in expected]
        ids = [
            f"t{seed}_t{symmetry}_{''.join(map(str, table))}"
            for symmetry, table in zip(symmetries.tolist(), colour_maps.tolist(), strict=True)
        ]
        assert ids[1:] == [name for _, name, _ in expected[1:]]


def test_pairs_that_change_places_make_no_new_puzzle() -> None:
    one, two = np.array([[1, 0]], np.uint8), np.array([[2, 0]], np.uint8)
    pairs = [(one, one), (two, two)]
    key = np.uint64(source_key(1, "arc", "x"))
    numbers, _, _ = kept_draws(key, 500, 2500, *flat(pairs))
    # Four frames, and 36 sets of two colours; equal by the order of pairs alone.
    assert len(numbers) == 4 * 36
    assert len(arc_oracle.group(1, "x", pairs, 500)) == 4 * 36


def test_the_canonical_form_is_the_same_for_all_augmentations_of_a_pair() -> None:
    before, after = NUMBERS, NUMBERS[:2] * 0 + 7
    expected = canonical_pair(*flat([(before, after)]), 0).tobytes()
    for number in range(1, 40):
        symmetry, colours = arc_oracle.drawn(9, "a", number)
        change = Augmentation(symmetry, "".join(map(str, colours)))
        other = [(before, before), (change.apply(before), change.apply(after))]
        assert canonical_pair(*flat(other), 1).tobytes() == expected
        assert canonical_pair(*flat(other), 0).tobytes() != expected


def test_the_canonical_form_tells_other_pairs_apart() -> None:
    def form(before: list[list[int]], after: list[list[int]]) -> bytes:
        pair = np.array(before, np.uint8), np.array(after, np.uint8)
        return bytes(canonical_pair(*flat([pair]), 0))

    # Colour 0 is itself; the input and output change together; shapes count.
    assert form([[0]], [[0]]) != form([[1]], [[1]])
    assert form([[1]], [[1]]) == form([[5]], [[5]])
    assert form([[1]], [[1]]) != form([[1]], [[2]])
    assert form([[1, 0]], [[1, 0]]) != form([[1, 0]], [[0, 1]])
    assert form([[1, 0]], [[1, 0]]) == form([[0], [4]], [[0], [4]])
    assert form([[1, 1]], [[1]]) != form([[1]], [[1, 1]])
