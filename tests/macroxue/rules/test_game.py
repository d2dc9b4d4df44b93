"""Moves, true ranks, missing steps and symmetries; board_eval in each implementation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, decode_boards, pack_boards
from gristmill.macroxue.raw.strict_parser import RuleBroken, parse_step
from gristmill.macroxue.rules import game as moves
from gristmill.macroxue.rules.game import (
    BRANCHES,
    CELLS,
    COUNT,
    INT32_MIN,
    board_eval,
    board_score,
    board_scores,
    fresh,
    lacks_points,
    line_score,
    line_table,
    move,
    packed_scores,
    true_ranks,
    turned,
)
from gristmill.macroxue.rules.rank_search import search
from tests.macroxue.games import Game, play, step_rows
from tests.macroxue.lines import step


def slide_one_line(line: list[int]) -> tuple[list[int], int]:
    """One line, wall at index 0, as a person would play it."""
    tiles = [rank for rank in line if rank]
    out: list[int] = []
    points = 0
    while tiles:
        rank = tiles.pop(0)
        if tiles and tiles[0] == rank:
            tiles.pop(0)
            rank += 1
            points += 2**rank
        out.append(rank)
    return out + [0] * (4 - len(out)), points


def move_one_board(board: list[int], direction: int) -> tuple[list[int], int]:
    after = list(board)
    points = 0
    for line in range(4):
        if direction in (moves.LEFT, moves.RIGHT):
            cells = [4 * line + position for position in range(4)]
        else:
            cells = [4 * position + line for position in range(4)]
        if direction in (moves.RIGHT, moves.DOWN):
            cells.reverse()
        slid, earned = slide_one_line([board[cell] for cell in cells])
        points += earned
        for cell, rank in zip(cells, slid, strict=True):
            after[cell] = rank
    return after, points


def test_lines_of_small_ranks_and_new_tiles_are_those_of_the_rules():
    lines = list(product(range(6), repeat=4))
    boards = np.array(lines, np.uint8).reshape(-1, 16)
    for direction in range(4):
        after, reward, changed = moves.move_towards(boards, direction)
        for row, board in enumerate(boards.tolist()):
            expected, points = move_one_board(board, direction)
            assert after[row].tolist() == expected
            assert reward[row] == points
            assert changed[row] == (expected != board)
    after = np.zeros((5, 16), np.uint8)
    after[:, 0] = 3
    boards = after.copy()
    boards[0, 5], boards[1, 5], boards[2, 5], boards[3, [5, 6]], boards[4, 0] = 1, 2, 3, 1, 1
    assert moves.has_new_tile(after, boards).tolist() == [True, True, False, False, False]
    assert not moves.has_new_tile(after, after).any()


@given(st.lists(st.lists(st.integers(0, 31), min_size=16, max_size=16), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_any_board_follows_the_rule(boards):
    array = np.array(boards, np.uint8)
    directions = (np.arange(len(boards)) % 4).astype(np.uint8)
    after, reward, changed = moves.move(array, directions)
    legal = moves.legal_moves(array)
    for row, board in enumerate(boards):
        expected, points = move_one_board(board, int(directions[row]))
        assert after[row].tolist() == expected
        assert reward[row] == points
        assert changed[row] == (expected != board)
        for direction in range(4):
            assert bool(legal[row] >> direction & 1) == (
                move_one_board(board, direction)[0] != board
            )


def test_any_number_of_boards_has_the_same_moves_which_must_fit_them():
    boards = np.random.default_rng(7).integers(0, 4, (20_001, 16), dtype=np.uint8)
    directions = np.random.default_rng(8).integers(0, 4, 20_001, dtype=np.uint8)
    whole = moves.move(boards, directions)
    pieces = [
        moves.move(boards[i : i + 997], directions[i : i + 997]) for i in range(0, 20_001, 997)
    ]
    for part in range(3):
        assert np.array_equal(whole[part], np.concatenate([piece[part] for piece in pieces]))
    boards = np.zeros((2, 16), np.uint8)
    for directions in (np.zeros(3, np.uint8), np.array([0, 4], np.uint8)):
        with pytest.raises(ValueError, match=r"0\.\.3"):
            moves.move(boards, directions)


@pytest.mark.parametrize(
    "boards",
    [
        np.zeros((2, 15), np.uint8),
        np.zeros(16, np.uint8),
        np.zeros((2, 16), np.int64),
        np.full((1, 16), 32, np.uint8),
    ],
)
def test_arrays_that_are_no_boards_are_refused(boards):
    with pytest.raises(ValueError, match=r"boards must be|above 31"):
        moves.legal_moves(boards)


HIGH = [
    [17, 16, 3, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [16, 16, 15, 15, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [0, 17, 0, 16, 0, 0, 16, 17, 0, 1, 0, 0, 0, 0, 0, 18],
    [15, 15, 15, 15, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1],
]


def games() -> list[Game]:
    return [play(50 + i, 120, start) for i, start in enumerate(HIGH)] + [play(3, 80)]


def starts_of(played: list[Game]) -> np.ndarray:
    lengths = [len(one.boards) for one in played]
    return np.cumsum([0, *lengths[:-1]])


def test_ranks_of_games_with_high_tiles_are_found_exactly():
    played = games()
    steps = step_rows(played)
    truth = np.concatenate([one.boards for one in played])
    assert truth.max() >= 18
    assert (decode_boards(steps["board"], steps["tile_65536_mask"]) != truth).any()
    known = true_ranks(steps, starts_of(played))
    assert (known.ranks == truth).all()
    assert not known.unknown.any()
    assert known.masked == np.count_nonzero(steps["tile_65536_mask"])
    # A run that starts with masked tiles is solved at its first row, or within a few
    # where that is a tie, and followed from there.
    assert 3 <= known.solved < 10
    assert known.solved + known.followed == known.masked
    assert known.unknown_rows == 0


def test_the_row_behind_a_gap_or_a_tie_is_solved():
    one = play(50, 120, HIGH[0])
    keep = np.r_[0:30, 45 : len(one.boards)]
    steps = step_rows([one])[keep]
    known = true_ranks(steps, np.array([0]))
    assert (known.ranks == one.boards[keep]).all()
    assert known.solved == 2
    # Mirrored about the diagonal, so that board_eval is the same either way round.
    first = [0, 16, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    other = [0, 17, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert board_eval(np.array([first])) == board_eval(np.array([other]))
    after, _, _ = moves.move_towards(np.array([first], np.uint8), moves.LEFT)
    second = after[0].copy()
    second[3] = 1
    one = Game(1, np.array([first, second], np.uint8), np.array([2, 1], np.uint8), 0, 1 << 17)
    known = true_ranks(step_rows([one]), np.array([0]))
    assert (known.ranks == one.boards).all()
    assert (known.solved, known.followed, known.unknown_rows) == (2, 0, 0)


def test_unknown_ranks_are_counted_and_never_merge():
    tie = [0, 16, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    pair = [16, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    one = Game(1, np.array([tie], np.uint8), np.array([2], np.uint8), 0, 1 << 17)
    two = Game(2, np.array([pair], np.uint8), np.array([2], np.uint8), 0, 1 << 17)
    steps = step_rows([one, two])
    steps["board_eval"][1] += 1
    known = true_ranks(steps, np.array([0, 1]))
    assert known.unknown.tolist() == [True, True]
    assert known.unfit.tolist() == [False, True]
    assert (known.masked, known.unknown_rows) == (2, 2)
    _, reward, _ = moves.move(known.ranks, steps["move_dir"])
    assert reward.tolist() == [0, 0]
    # With its board_eval right, the pair is a pair.
    known = true_ranks(step_rows([two]), np.array([0]))
    assert moves.move(known.ranks, two.moves)[1].tolist() == [1 << 17]


def test_max_rank_decides_where_board_eval_does_not():
    board = np.zeros((1, 16), np.uint8)
    board[0, [0, 5]] = [17, 16]
    steps = step_rows([Game(1, board, np.array([2], np.uint8), 0, 1 << 17)])
    column = steps["board_eval"].astype(np.int32)
    for top in (17, 0):
        ranks = decode_boards(steps["board"], steps["tile_65536_mask"])
        how = search(
            ranks,
            np.ascontiguousarray(steps["tile_65536_mask"]),
            np.ascontiguousarray(steps["move_dir"]),
            column,
            np.array([top], np.uint8),
            np.array([True]),
        )
        assert how.tolist() == [2]
        assert (ranks == board).all()


@given(
    st.lists(st.lists(st.integers(0, 31), min_size=16, max_size=16), min_size=1, max_size=4),
    st.integers(0, 255),
    st.integers(0, 255),
)
@settings(max_examples=60, deadline=None)
def test_any_row_is_taken_and_agrees_with_its_mask(boards, move, top):
    ranks = np.array(boards, np.uint8)
    steps = np.zeros(len(ranks), step_rows([]).dtype)
    steps["board"], steps["tile_65536_mask"] = pack_boards(ranks)
    steps["board_eval"] = np.clip(board_scores(ranks), -(1 << 31), (1 << 31) - 1)
    steps["move_dir"], steps["max_rank"] = move, top
    known = true_ranks(steps, np.array([0]))
    assert (np.minimum(known.ranks, 16) == np.minimum(ranks, 16)).all()
    assert known.ranks.max() <= 31


@pytest.mark.parametrize(
    ("tiles", "new"),
    [([1, 1], True), ([1, 2], True), ([2, 3], False), ([1], False), ([1] * 3, False)],
)
def test_a_new_game_has_two_tiles_of_rank_1_or_2(tiles, new):
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
def test_a_late_start_has_earned_what_its_tiles_can_be_worth(tiles, points, score, lacks):
    first = np.array(tiles + [0] * (16 - len(tiles)), np.uint8)
    assert lacks_points(first, points, score) == lacks


ROWS = step_rows([play(3, 60)])


def test_symmetries_are_a_group_and_a_move_of_an_image_is_the_image_of_the_move():
    cells = {tuple(each): k for k, each in enumerate(CELLS.tolist())}
    assert len(cells) == COUNT
    for one in range(COUNT):
        products = set()
        for other in range(COUNT):
            both = cells[tuple(CELLS[one][CELLS[other]].tolist())]
            products.add(both)
            assert BRANCHES[both].tolist() == BRANCHES[one][BRANCHES[other]].tolist()
        assert products == set(range(COUNT))
    boards = decode_boards(ROWS["board"], ROWS["tile_65536_mask"])
    after, points, _ = move(boards, ROWS["move_dir"].copy())
    for symmetry in range(COUNT):
        image = turned(ROWS, symmetry)
        ranks = decode_boards(image["board"], image["tile_65536_mask"])
        moved, earned, _ = move(ranks, image["move_dir"].copy())
        assert (moved == after[:, CELLS[symmetry]]).all()
        assert (earned == points).all()
        assert (image["board_eval"] == board_eval(ranks)).all()


def test_turns_take_the_moves_that_the_trainer_takes_and_scores_follow_the_formula():
    assert BRANCHES[:5].tolist() == [
        [0, 1, 2, 3], [2, 3, 1, 0], [1, 0, 3, 2], [3, 2, 0, 1], [0, 1, 3, 2],
    ]  # fmt: skip
    boards = np.random.default_rng(3).integers(0, 16, (5000, 16))
    scores = packed_scores(pack_boards(boards)[0], line_table())
    assert (scores == board_scores(boards)).all()


LINES = {
    (1, 0, 0, 0): 4,
    (0, 1, 0, 0): -22,
    (0, 0, 0, 1): -24,
    (1, 1, 0, 0): 10,
    (1, 1, 1, 1): 20,
    (3, 2, 1, 0): 68,
    (0, 1, 2, 3): -288,
    (2, 0, 2, 0): -72,
    (15, 15, 0, 0): 2457600,
    (17, 16, 15, 14): 7766016,
    (14, 15, 16, 17): -23756800,
}


def one_at(*cells: int) -> list[int]:
    return [int(i in cells) for i in range(16)]


def checker(a: int, b: int) -> list[int]:
    return [a if (i + i // 4) % 2 == 0 else b for i in range(16)]


BOARDS = [
    ([0] * 16, 0),
    (one_at(0), 8),
    (one_at(3), -20),
    (one_at(15), -48),
    (one_at(5), -44),
    (one_at(0, 1), 18),
    ([6, 5, 3, 1, 2, 2, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0], 2376),
    ([15, 11, 8, 1, 13, 9, 7, 1, 6, 5, 3, 3, 1, 2, 4, 1], 2513308),
    (list(range(15, -1, -1)), 3618726),
    (list(range(16)), -16031270),
    ([2, 2, 1, 1, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7], -33140),
    ([15, 14, 10, 5, 13, 11, 9, 3, 8, 7, 4, 1, 3, 2, 1, 0], 3471764),
    ([14, 13, 12, 1, 11, 10, 9, 1, 8, 7, 6, 1, 1, 1, 1, 1], 1702964),
    ([1] * 16, 160),
    ([11] * 16, 1802240),
    (list(range(16, 0, -1)), 7752964),
    ([17, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], 14333862),
    ([17, 16, 15, 14, 10, 11, 12, 13, 9, 8, 7, 6, 2, 3, 4, 5], 15023208),
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17], -69017126),
    ([16] * 16, 83886080),
    ([17] * 16, 178257920),
    (checker(1, 15), -62914240),
    (checker(0, 17), -285212672),
    ([1, 2, 3] + [0] * 13, -170),
    ([17, 16, 15] + [0] * 12 + [16], -10092544),
]


@pytest.mark.parametrize(("line", "score"), LINES.items())
def test_line_vectors(line, score):
    assert line_score(line) == score
    if max(line) < 16:
        assert line_table()[line[0] << 12 | line[1] << 8 | line[2] << 4 | line[3]] == score


@pytest.mark.parametrize(("board", "score"), BOARDS)
def test_board_vectors_in_every_form(board, score):
    from gristmill.macroxue.raw.fast_scanner import END, PAD, scan

    assert board_score(board) == score
    assert board_eval(np.array([board])).tolist() == [score]
    line = step(board=board) + b"\n"
    rows = np.zeros(1, STEP_ROW_DTYPE)
    text = np.frombuffer(line + bytes(PAD), np.uint8)
    assert scan(text, 0, len(line), rows, 0, np.zeros(4, np.int64))[2] == END
    assert rows["board_eval"][0] == score


@given(st.lists(st.lists(st.integers(0, 19), min_size=16, max_size=16), min_size=1, max_size=4))
def test_forms_agree_and_ranks_up_to_19_fit(boards):
    expected = [board_score(board) for board in boards]
    assert board_eval(np.array(boards)).tolist() == expected


def test_overflow_is_an_error_and_too_many_masked_tiles_are_unknown():
    high = checker(0, 21)
    assert board_score(high) < INT32_MIN
    with pytest.raises(OverflowError, match="board 1"):
        board_eval(np.array([[0] * 16, high]))
    with pytest.raises(RuleBroken, match="overflows int32"):
        parse_step(step(board=high))
    with pytest.raises(ValueError, match=r"0\.\.31"):
        board_eval(np.array([[32] * 16]))
    one = Game(1, np.full((1, 16), 16, np.uint8), np.array([2], np.uint8), 0, 1 << 17)
    steps = step_rows([one])
    steps["max_rank"] = 0
    known = true_ranks(steps, np.array([0]))
    assert known.unknown.tolist() == [True]
    assert not known.unfit.any()
    steps["max_rank"] = 16
    assert (true_ranks(steps, np.array([0])).ranks == 16).all()
