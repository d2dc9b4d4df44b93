"""A player of 2048 whose games look like real ones.

It values a move by the tiles that may appear after it and the best reply to each of them
(expectimax over two moves), in units of board_eval. All arithmetic up to the last division is
in integers, so that games are the same on each machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gristmill.macroxue.rules.board_eval import board_eval
from gristmill.macroxue.rules.moves import Ranks, move_towards

# This is subtracted from the board_eval of a board without a legal move.
_LOSS = 2_000_000
# A new tile has rank 1 nine times in ten, else rank 2.
_WEIGHTS = {1: 9, 2: 1}
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Step:
    """One move of a game.

    values: expected board_eval after each of the four moves; NaN for an illegal move.
    """

    board: tuple[int, ...]
    move: int
    values: tuple[float, float, float, float]
    reward: int
    after: tuple[int, ...]


class Dice:
    """The random numbers of SplitMix64: the same for a seed on each machine, with any library."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _WORD

    def below(self, bound: int) -> int:
        """A number of 0..bound-1; for a bound below 2^14 the bias is under 2^-50."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        word = self._state
        word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ word >> 27) * 0x94D049BB133111EB) & _WORD
        return (word ^ word >> 31) % bound


def spawn(board: Ranks, dice: Dice) -> None:
    """Put a new tile on an empty cell of a board uint8 [16]: rank 1, or rank 2 once in ten."""
    empty = np.flatnonzero(board == 0)
    cell = empty[dice.below(len(empty))]
    board[cell] = 2 if dice.below(10) == 0 else 1


def _best_reply(boards: Ranks) -> NDArray[np.int64]:
    """The board_eval int64 [N] after the best move on each board; less _LOSS if none is legal."""
    moved = [move_towards(boards, direction) for direction in range(4)]
    changed = np.stack([change for _, _, change in moved])
    scores = np.full(changed.shape, np.iinfo(np.int64).min)
    scores[changed] = board_eval(np.stack([after for after, _, _ in moved])[changed])
    lost = np.flatnonzero(~changed.any(axis=0))
    scores[0, lost] = board_eval(boards[lost]).astype(np.int64) - _LOSS
    best: NDArray[np.int64] = scores.max(axis=0)
    return best


def judge(boards: Ranks) -> tuple[NDArray[np.float64], list[Ranks], list[NDArray[np.int64]]]:
    """Value each move: the expected board_eval after the move, a new tile and the best reply.

    boards: uint8 [N, 16], ranks.

    Returns values float64 [N, 4] with NaN for illegal moves; the boards after each move, four
    uint8 [N, 16]; and its points, four int64 [N].
    """
    values = np.full((len(boards), 4), np.nan)
    afters, rewards, legal = [], [], []
    for direction in range(4):
        after, reward, changed = move_towards(boards, direction)
        afters.append(after)
        rewards.append(reward)
        legal.append(changed)
    direction_of, row_of = np.nonzero(np.stack(legal))
    moved = np.stack(afters)[direction_of, row_of]

    # Each new tile on each empty cell, for all boards and moves together.
    which, cell = np.nonzero(moved == 0)
    total = np.zeros(len(moved), np.int64)
    tiles = np.repeat(moved[which][None], len(_WEIGHTS), axis=0)
    for layer, rank in zip(tiles, _WEIGHTS, strict=True):
        layer[np.arange(len(cell)), cell] = rank
    replies = _best_reply(tiles.reshape(-1, 16)).reshape(len(_WEIGHTS), -1)
    for scores, weight in zip(replies, _WEIGHTS.values(), strict=True):
        np.add.at(total, which, weight * scores)
    chances = sum(_WEIGHTS.values()) * np.bincount(which, minlength=len(moved))
    values[row_of, direction_of] = total / chances
    return values, afters, rewards


def play(starts: Ranks, dice: list[Dice], limits: list[int]) -> Iterator[list[tuple[int, Step]]]:
    """Play several games together.

    starts: uint8 [G, 16], the board of each game.

    Yields one list for each move: (game, step) of the games that are not over. A game is over
    without a legal move, or after its limit.
    """
    boards = starts.copy()
    going = np.flatnonzero(np.array(limits) > 0)
    moves = 0
    while len(going):
        values, afters, rewards = judge(boards[going])
        able = ~np.isnan(values).all(axis=1)
        steps = []
        for row in np.flatnonzero(able):
            game = int(going[row])
            best = int(np.nanargmax(values[row]))
            up, down, left, right = (float(value) for value in values[row])
            before = tuple(boards[game].tolist())
            boards[game] = afters[best][row]
            spawn(boards[game], dice[game])
            after = tuple(boards[game].tolist())
            reward = int(rewards[best][row])
            steps.append((game, Step(before, best, (up, down, left, right), reward, after)))
        yield steps
        moves += 1
        going = np.array([game for game in going[able] if limits[game] > moves], dtype=np.intp)
