"""Augmentations of a Domino scenario, and what makes two scenarios the same.

After a modular change tiles are no longer stored low to high, and the tile to play need not be the
heaviest. Source: docs/formats/puzzles.md#domino-augmentation
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains.domino_game import game_keys
from gristmill.puzzles.domains.domino_rows import (
    FIRST,
    HAND,
    HAND_SIZE,
    LEFT,
    ON_LEFT,
    ON_RIGHT,
    POSITION,
    RIGHT,
    SEQ_LEN,
    TILES,
    VALUES,
)
from gristmill.puzzles.domains.randomness import below, shuffle, start
from gristmill.puzzles.format.dataset import Integers
from gristmill.run.kernels import kernel

MODULAR: Final = "modular"
MOST_TABLE: Final = 6
"""Tiles on the table of a scenario, at most: it has seven tiles, and one of the hand is played."""
_TRIES = 5
_ORDERS = 2 * factorial(HAND_SIZE)
_BITS = 5
_INDEX = np.zeros((VALUES, VALUES), np.int64)
for _place, (_low, _high) in enumerate(combinations_with_replacement(range(VALUES), 2)):
    _INDEX[_low, _high] = _INDEX[_high, _low] = _place


@dataclass(frozen=True)
class Change:
    """What one augmentation changes. order: slot `i` of the hand gets the tile of `order[i]`."""

    is_reversed: bool = False
    order: tuple[int, ...] = tuple(range(HAND_SIZE))
    offset: int = 0


def augmentation(seed: int, source: str, number: int, kind: str) -> Change:
    """The parameters of a draw of a game, as `train:17`; number 0 changes nothing."""
    if number == 0:
        return Change()
    drawn = np.zeros(1 + HAND_SIZE, np.int64)
    split, _, game = source.rpartition(":")
    (key,) = game_keys(seed, split, np.array([int(game)]))
    _drawn(key, number, kind == MODULAR, drawn)
    if kind == MODULAR:
        return Change(offset=int(drawn[0]))
    return Change(bool(drawn[0]), tuple(drawn[1:].tolist()))


def augmented(
    inputs: npt.NDArray[np.uint8],
    labels: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint64],
    num_aug: int,
    kind: str,
) -> tuple[
    npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.int32]
]:
    """Groups of scenarios and augmentations: inputs, labels, draws and sizes, int32."""
    limit = VALUES - 1 if kind == MODULAR else _ORDERS - 1
    room = len(inputs) * (1 + min(num_aug, limit))
    rows, moves = np.zeros((room, SEQ_LEN), np.uint8), np.zeros((room, SEQ_LEN), np.uint8)
    draws, counts = np.zeros(room, np.int32), np.zeros(len(inputs), np.int32)
    _augment(inputs, labels, keys, num_aug, kind == MODULAR, rows, moves, draws, counts)
    total = int(counts.sum())
    return rows[:total], moves[:total], draws[:total], counts


def canonical(inputs: Integers, kind: str) -> npt.NDArray[np.uint64]:
    """A number for each scenario, uint64, equal for the same alone; 0 for over six tiles."""
    found = np.zeros(len(inputs), np.uint64)
    tokens = np.ascontiguousarray(inputs, np.uint8)
    _canonical(tokens, VALUES if kind == MODULAR else 1, found)
    return found


@njit
def _draw(state, key, number, is_modular, drawn):
    """Offset, or direction and order of the hand, to `drawn`: int64 [8]."""
    start(state, key, number)
    if is_modular:
        drawn[0] = 1 + below(state, VALUES - 1)
        return
    drawn[0] = below(state, 2)
    for slot in range(HAND_SIZE):
        drawn[1 + slot] = slot
    shuffle(state, drawn[1:])


@kernel("void(u8, i8, b1, i8[::1])", nogil=True)
def _drawn(key, number, is_modular, drawn):
    _draw(np.zeros(1, np.uint64), key, number, is_modular, drawn)


@njit
def _sizes(tokens):
    """Tiles on the table, and in the hand."""
    table = hand = 0
    while table < TILES and tokens[2 * table]:
        table += 1
    while hand < HAND_SIZE and tokens[HAND + 2 * hand]:
        hand += 1
    return table, hand


@njit
def _rank(order, size):
    """The number of an order among all orders of `size` slots; other slots are left out."""
    rank = 0
    for place in range(order.shape[0]):
        if order[place] >= size:
            continue
        smaller, rest = 0, 0
        for later in order[place + 1 :]:
            if later < size:
                rest += 1
                smaller += later < order[place]
        rank = rank * (rest + 1) + smaller
    return rank


@njit
def _reorder(tokens, label, drawn, row, move):
    """Write a scenario with its chain reversed and its hand in another order."""
    table, hand = _sizes(tokens)
    row[:], move[:] = tokens, label
    if drawn[0]:
        for tile in range(table):
            row[2 * tile] = tokens[2 * (table - 1 - tile)]
            row[2 * tile + 1] = tokens[2 * (table - 1 - tile) + 1]
        row[LEFT], row[RIGHT] = tokens[RIGHT], tokens[LEFT]
        # A chain that is the same from both sides has one label, on the left.
        if ON_LEFT <= label[POSITION] < FIRST and _turns(tokens, table):
            move[POSITION] = ON_LEFT + ON_RIGHT - label[POSITION]
    slot = 0
    for source in drawn[1:]:
        if source < hand:
            row[HAND + 2 * slot] = tokens[HAND + 2 * source]
            row[HAND + 2 * slot + 1] = tokens[HAND + 2 * source + 1]
            slot += 1


@njit
def _shift(tokens, label, offset, row, move):
    """Write a scenario with an offset added to every value."""
    row[:], move[:] = tokens, label
    for place in range(SEQ_LEN):
        if tokens[place]:
            row[place] = (tokens[place] - 1 + offset) % VALUES + 1
    for place in range(POSITION):
        if label[place]:
            move[place] = (label[place] - 1 + offset) % VALUES + 1


@njit
def _turns(tokens, table):
    """Whether the chain is another one from the other side; one double is not."""
    return table > 1 or (table == 1 and tokens[0] != tokens[1])


@njit
def _forms(tokens, is_modular):
    """How many inputs augmentations can give, the scenario itself included."""
    if is_modular:
        return VALUES
    table, hand = _sizes(tokens)
    forms = 2 if _turns(tokens, table) else 1
    for size in range(2, hand + 1):
        forms *= size
    return forms


@njit
def _number(tokens, drawn, is_modular):
    """The number of the input that a draw gives, among those of the scenario; 0 is itself."""
    if is_modular:
        return drawn[0]
    table, hand = _sizes(tokens)
    return 2 * _rank(drawn[1:], hand) + (drawn[0] and _turns(tokens, table))


@kernel(
    "void(u1[:,::1], u1[:,::1], u8[::1], i8, b1, u1[:,::1], u1[:,::1], i4[::1], i4[::1])",
    nogil=True,
)
def _augment(inputs, labels, keys, num_aug, is_modular, rows, moves, draws, counts):
    state = np.zeros(1, np.uint64)
    drawn = np.zeros(1 + HAND_SIZE, np.int64)
    last_game = np.full(_ORDERS, -1)  # that had the input of this number
    at = 0
    for game in range(inputs.shape[0]):
        tokens, label = inputs[game], labels[game]
        last_game[0] = game
        rows[at], moves[at], draws[at] = tokens, label, 0
        first = at
        at += 1
        most = min(num_aug, _forms(tokens, is_modular) - 1)
        for number in range(1, _TRIES * num_aug + 1):
            if at - first > most:
                break
            _draw(state, keys[game], number, is_modular, drawn)
            made = _number(tokens, drawn, is_modular)
            if last_game[made] == game:
                continue
            last_game[made] = game
            if is_modular:
                _shift(tokens, label, drawn[0], rows[at], moves[at])
            else:
                _reorder(tokens, label, drawn, rows[at], moves[at])
            draws[at] = number
            at += 1
        counts[game] = at - first


@njit
def _tile(tokens, place, offset):
    low, high = tokens[place] - 1, tokens[place + 1] - 1
    return _INDEX[(low + offset) % VALUES, (high + offset) % VALUES]


@njit
def _code(tokens, table, hand, offset):
    """Hand and chain, the smaller direction, of a scenario with an offset added."""
    held = forward = backward = np.uint64(0)
    for slot in range(hand):
        held |= np.uint64(1) << np.uint64(_tile(tokens, HAND + 2 * slot, offset))
    for place in range(table):
        ahead = np.uint64(_tile(tokens, 2 * place, offset) + 1)
        behind = np.uint64(_tile(tokens, 2 * (table - 1 - place), offset) + 1)
        forward = forward << np.uint64(_BITS) | ahead
        backward = backward << np.uint64(_BITS) | behind
    return min(forward, backward) << np.uint64(TILES) | held


@kernel("void(u1[:,::1], i8, u8[::1])", nogil=True)
def _canonical(inputs, offsets, found):
    for row in range(inputs.shape[0]):
        table, hand = _sizes(inputs[row])
        if table <= MOST_TABLE:
            least = _code(inputs[row], table, hand, 0)
            for offset in range(1, offsets):
                least = min(least, _code(inputs[row], table, hand, offset))
            found[row] = least
