"""True ranks above 65536: found from what a pack keeps, or counted as unknown."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.macroxue.format.rows import decode_boards, pack_boards
from gristmill.macroxue.rules import moves
from gristmill.macroxue.rules.board_eval import board_eval, board_scores, line_table, packed_scores
from gristmill.macroxue.rules.rank_search import search
from gristmill.macroxue.rules.true_ranks import true_ranks
from tests.macroxue.games import Game, play, step_rows

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


def test_ranks_of_games_with_high_tiles_are_found_exactly() -> None:
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


def test_the_row_behind_a_gap_is_solved() -> None:
    one = play(50, 120, HIGH[0])
    keep = np.r_[0:30, 45 : len(one.boards)]
    steps = step_rows([one])[keep]
    known = true_ranks(steps, np.array([0]))
    assert (known.ranks == one.boards[keep]).all()
    assert known.solved == 2


def test_the_row_behind_a_tie_decides_it() -> None:
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


def test_unknown_ranks_are_counted_and_never_merge() -> None:
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


def test_max_rank_decides_where_board_eval_does_not() -> None:
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


def test_too_many_masked_tiles_are_unknown() -> None:
    one = Game(1, np.full((1, 16), 16, np.uint8), np.array([2], np.uint8), 0, 1 << 17)
    steps = step_rows([one])
    steps["max_rank"] = 0
    known = true_ranks(steps, np.array([0]))
    assert known.unknown.tolist() == [True]
    assert not known.unfit.any()
    steps["max_rank"] = 16
    assert (true_ranks(steps, np.array([0])).ranks == 16).all()


@given(
    st.lists(st.lists(st.integers(0, 31), min_size=16, max_size=16), min_size=1, max_size=4),
    st.integers(0, 255),
    st.integers(0, 255),
)
@settings(max_examples=60, deadline=None)
def test_any_row_is_taken_and_agrees_with_its_mask(
    boards: list[list[int]], move: int, top: int
) -> None:
    ranks = np.array(boards, np.uint8)
    steps = np.zeros(len(ranks), step_rows([]).dtype)
    steps["board"], steps["tile_65536_mask"] = pack_boards(ranks)
    steps["board_eval"] = np.clip(board_scores(ranks), -(1 << 31), (1 << 31) - 1)
    steps["move_dir"], steps["max_rank"] = move, top
    known = true_ranks(steps, np.array([0]))
    assert (np.minimum(known.ranks, 16) == np.minimum(ranks, 16)).all()
    assert known.ranks.max() <= 31


def test_scores_from_packed_boards_equal_the_formula() -> None:
    boards = np.random.default_rng(3).integers(0, 16, (5000, 16))
    scores = packed_scores(pack_boards(boards)[0], line_table())
    assert (scores == board_scores(boards)).all()
