"""Where the cells of grids stand in rows of tokens, and which token a cell has."""

from random import Random

import numpy as np
import pytest

from gristmill.puzzles.domains.grid import (
    INVERSE,
    Symbols,
    decoded,
    encoded,
    extents,
    index_map,
    index_maps,
    maze_encoding,
    side_of,
    transform,
    trimmed,
    turned_cells,
    turns,
)
from gristmill.puzzles.domains.maze_paths import RULES, canonical, findings, rule_names
from tests.puzzles.plain_mazes import broken, maze, symmetries


@pytest.mark.parametrize("symmetry", range(8))
@pytest.mark.parametrize("sides", [(4, 4), (3, 5), (5, 3)])
def test_a_turned_grid_is_at_the_upper_left_of_its_row(symmetry, sides):
    grid = np.arange(1, 7).reshape(2, 3)
    row = np.zeros(sides, int)
    row[:2, :3] = grid
    turned = transform(grid, symmetry)
    expected = np.zeros(sides, int)
    expected[: turned.shape[0], : turned.shape[1]] = turned
    cells = turned_cells(symmetry, (2, 3), sides)
    assert np.where(cells < 0, 0, row.reshape(-1)[cells]).tolist() == expected.reshape(-1).tolist()


BY_NUMPY = {
    0: lambda grid: grid,
    1: lambda grid: np.rot90(grid, 1),
    2: lambda grid: np.rot90(grid, 2),
    3: lambda grid: np.rot90(grid, 3),
    4: np.fliplr,
    5: np.flipud,
    6: np.transpose,
    7: lambda grid: np.fliplr(np.rot90(grid, 1)),
}


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (3, 4), (4, 4)])
@pytest.mark.parametrize("symmetry", range(8))
def test_a_symmetry_is_what_numpy_makes(symmetry, shape):
    grid = np.arange(shape[0] * shape[1], dtype=np.uint8).reshape(shape)
    expected = BY_NUMPY[symmetry](grid)
    after = transform(grid, symmetry)
    assert after.dtype == grid.dtype and after.flags.c_contiguous
    np.testing.assert_array_equal(after, expected)
    np.testing.assert_array_equal(grid.flat[index_map(symmetry, *shape)], expected.reshape(-1))
    assert turns(symmetry) == (np.zeros((2, 3)).shape != BY_NUMPY[symmetry](np.zeros((2, 3))).shape)


@pytest.mark.parametrize("symmetry", range(8))
def test_the_inverse_undoes_a_symmetry(symmetry):
    grid = np.arange(12).reshape(3, 4)
    after = transform(transform(grid, symmetry), INVERSE[symmetry])
    np.testing.assert_array_equal(after, grid)


def test_maps_of_a_square_are_permutations_and_grids_end_at_their_last_cell():
    maps = index_maps(3)
    assert maps.shape == (8, 9) and maps.dtype == np.int32
    assert len({tuple(each) for each in maps.tolist()}) == 8
    assert all(sorted(each) == list(range(9)) for each in maps.tolist())
    grids = np.zeros((3, 2, 4), np.uint16)
    grids[0, 0, 2] = grids[1, 1, 0] = 1
    assert extents(grids).tolist() == [[1, 3], [2, 1], [0, 0]]
    assert trimmed(grids[0]).tolist() == [[0, 0, 1]] and trimmed(grids[2]).size == 0
    assert Symbols.of(".#S", None, None).token_of == {".": 1, "#": 2, "S": 3}
    assert Symbols.of(".#S", None, "S").texts == ("S", ".", "#")
    plain = Symbols.of(None, 3, None)
    assert plain.token_of == {0: 1, 1: 2, 2: 3} and plain.encoding(2, 5).vocab_size == 4
    assert plain.encoding(2, 5).seq_len == 10


@pytest.mark.parametrize("symmetry", [-1, 8])
def test_another_number_is_no_symmetry(symmetry):
    with pytest.raises(ValueError, match="not a symmetry"):
        transform(np.zeros((2, 2)), symmetry)


def test_each_character_has_the_token_of_the_original_and_every_other_byte_is_no_cell():
    tokens = encoded(np.frombuffer(b"# SGo", np.uint8))
    assert tokens.tolist() == [1, 2, 3, 4, 5]
    assert tokens.dtype == np.uint8
    tokens = encoded(np.arange(256, dtype=np.uint8))
    assert {chr(byte) for byte in np.flatnonzero(tokens)} == set("# SGo")
    made = maze_encoding(30)
    assert (made.seq_len, made.vocab_size, made.pad_id, made.ignore_label_id) == (900, 6, 0, 0)


def test_a_maze_comes_back_as_lines_whose_other_sides_are_no_neighbours():
    text = b"# SGo  #o"
    assert decoded(encoded(np.frombuffer(text, np.uint8))) == ["# S", "Go ", " #o"]
    assert decoded(np.array([0, 1, 6, -1])) == ["?#", "??"]
    with pytest.raises(ValueError, match="5 tokens"):
        decoded(np.ones(5, np.uint8))
    # The last cell of a line and the first of the next share no side.
    assert found("##SG#####", "##SG#####") == {"goal_not_reachable"}


@pytest.mark.parametrize(
    ("length", "side"), [(900, 30), (1, 1), (0, None), (2, None), (899, None), (-4, None)]
)
def test_a_square_has_a_side(length, side):
    assert side_of(length) == side


GOOD = ("S  # #  G", "So # #ooG")


def tokens(*texts: str) -> np.ndarray:
    return encoded(np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1))


def found(question: str, answer: str) -> set[str]:
    (each,) = findings(tokens(question), tokens(answer))
    return set(rule_names(int(each)))


@pytest.mark.parametrize(
    ("question", "answer", "rules"),
    [
        ("S  # #  G", "Soo# #  G", {"path_not_connected"}),
        ("S  #  # G", "Soo# o# G", set()),
        ("S  #  # G", "Soo#  # G", {"path_not_connected"}),
        ("S     # G", "So ooo#oG", {"path_not_shortest"}),
        ("S     # G", "Soo oo# G", {"path_not_shortest"}),
        ("S  ### G ", "So ### G ", {"goal_not_reachable"}),
        ("S #### GS", "S #### GS", {"one_start"}),
        ("G #### G#", "G #### G#", {"one_start", "one_goal"}),
        ("SG#######", "SG#######", set()),
        ("SG ######", "SGo######", {"path_not_shortest"}),
        ("SG##### #", "SG#####o#", {"path_not_connected"}),
        ("SGo######", "SGo######", {"path_in_input"}),
        ("SG ######", "SG#######", {"label_changes_cell"}),
        ("SG#######", "SGo######", {"label_changes_cell"}),
        ("SG ######", "GS ######", {"label_changes_cell"}),
        ("SG x#####", "SG  #####", {"token_of_no_cell"}),
        ("S", "S", {"one_goal"}),
    ],
)
def test_a_maze_breaks_the_rules_that_it_should(question, answer, rules):
    assert found(question, answer) == rules
    assert broken(question.replace("x", "?"), answer) == rules


def test_findings_are_those_of_plain_python():
    """Mazes of several sizes with up to three changed cells: every rule is broken somewhere."""
    random = Random(3)
    seen: set[str] = set()
    for side in (2, 3, 5, 9):
        mazes = [maze(random, side) for _ in range(150)]
        changed = [*mazes[:30], *(_changed(random, each) for each in mazes[30:])]
        questions, answers = zip(*changed, strict=True)
        rows = findings(tokens(*questions), tokens(*answers))
        listed = [set(rule_names(int(each))) for each in rows]
        assert listed == [broken(*each) for each in changed]
        assert not any(listed[:30])
        seen |= set().union(*listed)
    assert seen == set(RULES) - {"not_square", "token_of_no_cell"}


def _changed(random: Random, pair: tuple[str, str]) -> tuple[str, str]:
    question, answer = map(list, pair)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(question))
        character = random.choice("##  SGoo")
        if random.random() < 0.4:
            question[place] = character
        answer[place] = character
    return "".join(question), "".join(answer)


@pytest.mark.parametrize("value", [0, 6, -1, 257, 1 << 30])
def test_tokens_of_no_cell_are_found_in_either_array(value):
    for side in (0, 1):
        rows = [tokens(text).astype(np.int32) for text in GOOD]
        rows[side][0, 8] = value
        assert [rule_names(int(each)) for each in findings(*rows)] == [["token_of_no_cell"]]


def test_rows_of_no_square_break_that_rule_alone():
    found = findings(np.ones((2, 8), np.uint8), np.ones((2, 8), np.uint8))
    assert [rule_names(int(each)) for each in found] == [["not_square"]] * 2
    with pytest.raises(ValueError, match="8 tokens"):
        canonical(np.ones((2, 8), np.uint8))


def test_mazes_have_one_key_if_and_only_if_a_symmetry_makes_them_equal():
    random = Random(4)
    mazes = [maze(random, 3)[0] for _ in range(80)]
    forms: dict[str, bytes] = {}
    for text in mazes:
        keys = set(canonical(tokens(*symmetries(text))))
        assert len(keys) == 1
        form = min(symmetries(text))
        assert forms.setdefault(form, *keys) in keys
    assert len(set(forms.values())) == len(forms)
    assert {len(key) for key in forms.values()} == {16}
