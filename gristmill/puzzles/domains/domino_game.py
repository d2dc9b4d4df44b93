"""Domino games: deal, play some random moves, and find the best move.

Each attempt shuffles the tiles, deals seven, and draws the number of moves before the scenario, 0
to 10; a move draws a playable tile, then one of its positions. Where no tile can be played then,
the next attempt continues the stream. Source: docs/formats/puzzles.md#domino
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains.domino_rows import (
    FIRST,
    HAND,
    HAND_SIZE,
    KIND,
    LEFT,
    ON_LEFT,
    ON_RIGHT,
    POSITION,
    RIGHT,
    SEQ_LEN,
    TILES,
    VALUES,
)
from gristmill.puzzles.domains.randomness import below, start
from gristmill.puzzles.domains.source_key import source_key
from gristmill.run.kernels import kernel

_MOST_MOVES = 10
_PAIRS = np.array(list(combinations_with_replacement(range(VALUES), 2)), np.int64)
_LOW, _HIGH = _PAIRS[:, 0].copy(), _PAIRS[:, 1].copy()


def game_keys(seed: int, split: str, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """The keys of games, uint64 [games].

    The key of game n is the state of draw n of the source `split`.
    """
    keys = np.empty(len(numbers), np.uint64)
    split_key = np.uint64(source_key(seed, KIND, split))
    _derive(split_key, np.ascontiguousarray(numbers, np.int64), keys)
    return keys


def games(
    keys: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Play games up to a scenario with a playable tile.

    keys: of the games, uint64 [games].

    Returns inputs and labels, uint8 [games, 72].
    """
    inputs = np.zeros((len(keys), SEQ_LEN), np.uint8)
    labels = np.zeros((len(keys), SEQ_LEN), np.uint8)
    _play_all(keys, inputs, labels)
    return inputs, labels


@njit
def _deal(state, tiles, hand):
    """Seven tiles of a shuffled set; tiles, int64 [28], and hand, int64 [7], are changed."""
    for tile in range(TILES):
        tiles[tile] = tile
    for slot in range(HAND_SIZE):
        other = slot + below(state, TILES - slot)
        hand[slot] = tiles[other]
        tiles[other] = tiles[slot]


@njit
def _fits(tile, end):
    return _LOW[tile] == end or _HIGH[tile] == end


@njit
def _playable(hand, size, ends, found):
    """Slots of the hand that can be played go to `found`; returns how many. ends[0] < 0: none."""
    count = 0
    for slot in range(size):
        if ends[0] < 0 or _fits(hand[slot], ends[0]) or _fits(hand[slot], ends[1]):
            found[count] = slot
            count += 1
    return count


@njit
def _place(state, tile, chain, bounds, ends):
    """Put a tile at a random allowed end; bounds: first place of the chain, and one after it."""
    low, high = _LOW[tile], _HIGH[tile]
    left, right = _fits(tile, ends[0]), _fits(tile, ends[1])
    if ends[0] < 0:
        chain[bounds[1]] = tile
        bounds[1] += 1
        ends[0], ends[1] = low, high
    elif left and not (right and below(state, 2)):
        bounds[0] -= 1
        chain[bounds[0]] = tile
        ends[0] = high if low == ends[0] else low
    else:
        chain[bounds[1]] = tile
        bounds[1] += 1
        ends[1] = high if low == ends[1] else low


@njit
def _heaviest(state, hand, count, found):
    """One of the playable tiles with the most pips, each equally likely."""
    most, ties = -1, 0
    for slot in found[:count]:
        pips = _LOW[hand[slot]] + _HIGH[hand[slot]]
        if pips > most:
            most, ties = pips, 0
        ties += pips == most
    drawn = below(state, ties)
    for slot in found[:count]:
        if _LOW[hand[slot]] + _HIGH[hand[slot]] == most:
            if drawn == 0:
                return hand[slot]
            drawn -= 1
    return -1


@njit
def _write(tiles, row, place):
    for number in range(tiles.shape[0]):
        row[place + 2 * number] = _LOW[tiles[number]] + 1
        row[place + 2 * number + 1] = _HIGH[tiles[number]] + 1


@njit
def _attempt(state, scratch, bounds, ends, tokens, label):
    """Deal, play, choose; whether a tile can be played, and its row is written."""
    tiles, hand, chain, found = scratch[0], scratch[1, :HAND_SIZE], scratch[2], scratch[3]
    _deal(state, tiles, hand)
    size = HAND_SIZE
    bounds[:] = HAND_SIZE
    ends[:] = -1
    for _ in range(below(state, _MOST_MOVES + 1)):
        count = _playable(hand, size, ends, found)
        if count == 0:
            break
        slot = found[below(state, count)]
        _place(state, hand[slot], chain, bounds, ends)
        size -= 1
        for place in range(slot, size):
            hand[place] = hand[place + 1]
    count = _playable(hand, size, ends, found)
    if count == 0:
        return False
    tile = _heaviest(state, hand, count, found)
    _write(chain[bounds[0] : bounds[1]], tokens, 0)
    _write(hand[:size], tokens, HAND)
    tokens[LEFT], tokens[RIGHT] = ends[0] + 1, ends[1] + 1
    label[0], label[1] = _LOW[tile] + 1, _HIGH[tile] + 1
    if ends[0] < 0:
        label[POSITION] = FIRST
    else:
        label[POSITION] = ON_LEFT if _fits(tile, ends[0]) else ON_RIGHT
    return True


@kernel("void(u8, i8[::1], u8[::1])", nogil=True)
def _derive(split_key, numbers, keys):
    for place in range(numbers.shape[0]):
        start(keys[place : place + 1], split_key, numbers[place])


@kernel("void(u8[::1], u1[:,::1], u1[:,::1])", nogil=True)
def _play_all(keys, inputs, labels):
    state = np.zeros(1, np.uint64)
    scratch = np.empty((4, TILES), np.int64)
    bounds, ends = np.empty(2, np.int64), np.empty(2, np.int64)
    for game in range(keys.shape[0]):
        start(state, keys[game], 0)
        # Some 40 of 100 attempts end with a playable tile.
        while not _attempt(state, scratch, bounds, ends, inputs[game], labels[game]):
            pass
