"""The moves of many boards compared with a rule for one board, and with real logs."""

import gzip
import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.macroxue.rules import moves
from tests.paths import REAL_DATA

REAL = REAL_DATA / "macroxue"


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


@pytest.mark.parametrize(
    ("line", "slid", "points"),
    [
        ([1, 1, 1, 1], [2, 2, 0, 0], 8),
        ([1, 1, 1, 0], [2, 1, 0, 0], 4),
        ([0, 1, 0, 1], [2, 0, 0, 0], 4),
        ([2, 1, 1, 0], [2, 2, 0, 0], 4),
        ([1, 1, 2, 0], [2, 2, 0, 0], 4),
        ([3, 2, 1, 1], [3, 2, 2, 0], 4),
        ([31, 31, 31, 31], [32, 32, 0, 0], 2**33),
        ([16, 0, 0, 16], [17, 0, 0, 0], 2**17),
        ([0, 0, 0, 0], [0, 0, 0, 0], 0),
    ],
)
def test_known_lines(line: list[int], slid: list[int], points: int) -> None:
    board = np.zeros((1, 16), np.uint8)
    board[0, :4] = line
    after, reward, changed = moves.move_towards(board, moves.LEFT)
    assert after[0, :4].tolist() == slid
    assert reward.tolist() == [points]
    assert changed.tolist() == [slid != line]


def test_every_line_of_small_ranks_in_every_direction() -> None:
    lines = list(product(range(6), repeat=4))
    boards = np.array(lines, np.uint8).reshape(-1, 16)
    for direction in range(4):
        after, reward, changed = moves.move_towards(boards, direction)
        for row, board in enumerate(boards.tolist()):
            expected, points = move_one_board(board, direction)
            assert after[row].tolist() == expected
            assert reward[row] == points
            assert changed[row] == (expected != board)


@given(st.lists(st.lists(st.integers(0, 31), min_size=16, max_size=16), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_any_board_follows_the_rule(boards: list[list[int]]) -> None:
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


def test_any_number_of_boards_gives_the_same_moves() -> None:
    boards = np.random.default_rng(7).integers(0, 4, (20_001, 16), dtype=np.uint8)
    directions = np.random.default_rng(8).integers(0, 4, 20_001, dtype=np.uint8)
    whole = moves.move(boards, directions)
    pieces = [
        moves.move(boards[i : i + 997], directions[i : i + 997]) for i in range(0, 20_001, 997)
    ]
    for part in range(3):
        assert np.array_equal(whole[part], np.concatenate([piece[part] for piece in pieces]))


@pytest.mark.parametrize(
    "boards",
    [
        np.zeros((2, 15), np.uint8),
        np.zeros(16, np.uint8),
        np.zeros((2, 16), np.int64),
        np.full((1, 16), 32, np.uint8),
    ],
)
def test_arrays_that_are_no_boards_are_refused(boards: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"boards must be|above 31"):
        moves.legal_moves(boards)


def test_moves_must_fit_the_boards() -> None:
    boards = np.zeros((2, 16), np.uint8)
    for directions in (np.zeros(3, np.uint8), np.array([0, 4], np.uint8)):
        with pytest.raises(ValueError, match=r"0\.\.3"):
            moves.move(boards, directions)


@pytest.mark.real
def test_real_games_earn_their_score_and_follow_from_board_to_board() -> None:
    if not REAL.is_dir():
        pytest.skip(f"the real drops are not at {REAL}")
    for meta_path in sorted((REAL / "d6_v1").glob("*.meta.json"))[:4]:
        meta = json.loads(meta_path.read_bytes())
        with gzip.open(str(meta_path).replace(".meta.json", ".jsonl.gz")) as lines:
            steps = [json.loads(line) for line in lines]
        boards = np.array([step["board"] for step in steps], np.uint8)
        directions = np.array([moves.DIRECTIONS.index(step["move"]) for step in steps], np.uint8)
        after, reward, changed = moves.move(boards, directions)
        assert changed.all()
        assert int(reward.sum()) == meta["score"]
        # The next board is the one after the move with one new tile on it.
        assert ((boards[1:] != after[:-1]).sum(axis=1) == 1).all()


def test_a_new_tile_is_one_of_rank_1_or_2_in_one_empty_cell() -> None:
    after = np.zeros((5, 16), np.uint8)
    after[:, 0] = 3
    boards = after.copy()
    boards[0, 5], boards[1, 5], boards[2, 5], boards[3, [5, 6]], boards[4, 0] = 1, 2, 3, 1, 1
    assert moves.has_new_tile(after, boards).tolist() == [True, True, False, False, False]
    assert not moves.has_new_tile(after, after).any()
