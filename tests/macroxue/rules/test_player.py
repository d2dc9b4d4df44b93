"""The player of the sample games: random numbers, new tiles, and how it values moves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gristmill.macroxue.rules.moves import LEFT, UP
from gristmill.macroxue.rules.player import Dice, judge, play, spawn


def test_dice_are_splitmix64() -> None:
    # The first published outputs of SplitMix64 for this seed.
    words = (6457827717110365317, 3203168211198807973, 9817491932198370423)
    for seed in (1234567, 1234567 + (1 << 64)):
        dice = Dice(seed)
        assert [dice.below(1 << 64) for _ in words] == list(words)
    assert Dice(1234567).below(100) == words[0] % 100


def test_a_new_tile_is_on_an_empty_cell_and_rarely_of_rank_2() -> None:
    dice = Dice(3)
    ranks = []
    for _ in range(2000):
        board = np.full(16, 5, np.uint8)
        board[[4, 11]] = 0
        spawn(board, dice)
        assert np.count_nonzero(board) == 15
        ranks.append(int(board[4] + board[11]))
    assert set(ranks) == {1, 2}
    assert 120 < ranks.count(2) < 280


def test_judge_marks_illegal_moves_and_prefers_the_merge() -> None:
    boards = np.array([[9, 8, 7, 6, 2, 3, 4, 5, 1, 1, 0, 0, 0, 0, 0, 0]], np.uint8)
    values, afters, rewards = judge(boards)
    assert np.isnan(values[0, UP])
    assert int(np.nanargmax(values[0])) == LEFT
    assert afters[LEFT][0, 8:10].tolist() == [2, 0]
    assert [int(points[0]) for points in rewards] == [0, 0, 4, 4]


def test_a_game_ends_at_its_limit_or_without_a_move() -> None:
    stuck = [1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 1]
    starts = np.array([stuck, [1, 1, *[0] * 14], [1, 1, *[0] * 14]], np.uint8)
    rounds = list(play(starts, [Dice(seed) for seed in range(3)], [9, 3, 0]))
    assert [[game for game, _ in steps] for steps in rounds] == [[1], [1], [1]]
    steps = [step for steps in rounds for _, step in steps]
    for before, after in pairwise(steps):
        assert before.after == after.board
    assert starts[1].tolist() == [1, 1, *[0] * 14]
