"""Domino games: scenarios after random moves, and what breaks a rule in one.

Each attempt shuffles the tiles, deals seven, and draws the number of moves before the scenario, 0
to 10; a move draws a playable tile, then one of its positions. Where no tile can be played then,
the next attempt continues the stream. Source: docs/formats/puzzles.md#domino
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains.domino_rows import (
    FIRST,
    HAND,
    HAND_SIZE,
    KIND,
    LEFT,
    NONE,
    ON_LEFT,
    ON_RIGHT,
    POSITION,
    RIGHT,
    SEQ_LEN,
    TILES,
    VALUES,
)
from gristmill.puzzles.domains.randomness import below, source_key, start
from gristmill.puzzles.format.dataset import Integers
from gristmill.run.kernels import kernel

_MOST_MOVES = 10
_PAIRS = np.array(list(combinations_with_replacement(range(VALUES), 2)), np.int64)
_LOW, _HIGH = _PAIRS[:, 0].copy(), _PAIRS[:, 1].copy()


def game_keys(seed: int, split: str, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """The keys of games, uint64 [games]: of game n the state of draw n of the source `split`."""
    keys = np.empty(len(numbers), np.uint64)
    split_key = np.uint64(source_key(seed, KIND, split))
    _derive(split_key, np.ascontiguousarray(numbers, np.int64), keys)
    return keys


def games(keys: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Play games by keys, uint64, up to a playable tile: inputs and labels, uint8 [games, 72]."""
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


RULES: Final = {
    "seq_len_mismatch": "the row does not have 72 tokens",
    "input_out_of_vocab": "a token of the input is not 0 to 7",
    "label_out_of_vocab": "a token of the label is not 0 to 7",
    "position_invalid": "the label has a position without a tile, a tile without one, or half one",
    "target_not_in_hand": "the tile to play is not in the hand",
    "target_not_match_left_end": "the tile to play on the left does not have the left end",
    "target_not_match_right_end": "the tile to play on the right does not have the right end",
    "first_on_nonempty_table": "the tile is played first, but the table has tiles",
    "label_tail_not_zero": "the label has tokens after the position",
    "half_empty_pair": "a tile has one empty half",
    "gap_between_tiles": "a tile comes after an empty pair",
    "tile_twice": "a tile is there twice, on the table or in the hand",
    "table_and_hand_not_seven": "table and hand do not have seven tiles together",
    "chain_not_connected": "neighbours on the table have no value in common to meet at",
    "ends_not_of_table": "the open ends are not those of the chain",
    "label_not_playable": "the tile to play fits no open end",
    "move_missing": "the label has no tile, but one can be played",
    "label_not_heaviest": "a heavier tile of the hand can be played",
    "tile_not_low_high": "a tile is not stored with its lower value first",
}
"""What a row may break, with a sentence for the user; the order is that of the bits."""

MODULAR_BREAKS: Final = ("label_not_heaviest", "tile_not_low_high")
"""Rules that an augmented row breaks where an offset was added to all values."""

(
    _SEQ_LEN,
    _INPUT_VOCAB,
    _LABEL_VOCAB,
    _POSITION,
    _NOT_IN_HAND,
    _NOT_LEFT,
    _NOT_RIGHT,
    _FIRST_LATER,
    _TAIL,
    _HALF,
    _GAP,
    _TWICE,
    _SEVEN,
    _CHAIN,
    _ENDS,
    _UNPLAYABLE,
    _MISSING,
    _LIGHT,
    _ORDER,
) = (1 << bit for bit in range(len(RULES)))


def findings(inputs: Integers, labels: Integers) -> npt.NDArray[np.uint32]:
    """The rules each row breaks, uint32 [rows]: bit k for rule k of `RULES`. rows: of 72 tokens."""
    found = np.zeros(len(inputs), np.uint32)
    if inputs.shape[1:] != (SEQ_LEN,) or labels.shape[1:] != (SEQ_LEN,):
        return found + np.uint32(_SEQ_LEN)
    _look(np.ascontiguousarray(inputs, np.int32), np.ascontiguousarray(labels, np.int32), found)
    return found


def rule_names(broken: int) -> list[str]:
    """The names of the rules whose bits are set, in the order of `RULES`."""
    return [name for bit, name in enumerate(RULES) if broken >> bit & 1]


def mask(names: tuple[str, ...]) -> int:
    """The bits of rules."""
    return sum(1 << bit for bit, name in enumerate(RULES) if name in names)


@njit
def _vocabulary(tokens, label):
    found = 0
    for place in range(SEQ_LEN):
        if tokens[place] < 0 or tokens[place] > VALUES:
            found |= _INPUT_VOCAB
        if label[place] < 0 or label[place] > VALUES:
            found |= _LABEL_VOCAB
        if place > POSITION and label[place] != 0:
            found |= _TAIL
    return found


@njit
def _pairs(tokens, begin, end, seen):
    """Findings of the tiles from `begin` to `end`, and how many; seen: bool [8, 8], changed."""
    found, count, has_gap = 0, 0, False
    for place in range(begin, end, 2):
        low, high = tokens[place], tokens[place + 1]
        if (low == 0) != (high == 0):
            found |= _HALF
        if low == 0 or high == 0:
            has_gap = True
            continue
        if has_gap:
            found |= _GAP
        if low > high:
            found |= _ORDER
            low, high = high, low
        if seen[low, high]:
            found |= _TWICE
        seen[low, high] = True
        count += 1
    return found, count


@njit
def _walk(tokens, count, end):
    """The open end on the right of a chain whose left end is `end`; 0 where tiles do not meet."""
    for place in range(0, 2 * count, 2):
        if tokens[place] == end:
            end = tokens[place + 1]
        elif tokens[place + 1] == end:
            end = tokens[place]
        else:
            return 0
    return end


@njit
def _chain(tokens, count):
    left, right = tokens[LEFT], tokens[RIGHT]
    if count == 0:
        return _ENDS if left or right else 0
    if left and right and _walk(tokens, count, left) == right:
        return 0
    if _walk(tokens, count, tokens[0]) or _walk(tokens, count, tokens[1]):
        return _ENDS
    return _CHAIN


@njit
def _has_fitting_tile(tokens, place, is_empty):
    low, high = tokens[place], tokens[place + 1]
    if low == 0 or high == 0:
        return False
    ends = (tokens[LEFT], tokens[RIGHT])
    return is_empty or low in ends or high in ends


@njit
def _position(tokens, label, is_empty):
    low, high, position = label[0], label[1], label[POSITION]
    if position > FIRST or (position == NONE) != (low == 0) or (low == 0) != (high == 0):
        return _POSITION
    found = 0
    if position == ON_LEFT and tokens[LEFT] not in (low, high):
        found |= _NOT_LEFT
    if position == ON_RIGHT and tokens[RIGHT] not in (low, high):
        found |= _NOT_RIGHT
    if position == FIRST and not is_empty:
        found |= _FIRST_LATER
    return found


@njit
def _move(tokens, label, is_empty):
    """Findings of the tile to play, among those of the hand."""
    low, high = label[0], label[1]
    most, is_held, is_playable = 0, False, False
    for place in range(HAND, LEFT, 2):
        can_play = _has_fitting_tile(tokens, place, is_empty)
        if can_play:
            most = max(most, tokens[place] + tokens[place + 1])
        if low and tokens[place] == low and tokens[place + 1] == high:
            is_held, is_playable = True, is_playable or can_play
    if low == 0:
        return _MISSING if most else 0
    if not is_held:
        return _NOT_IN_HAND
    if not is_playable:
        return _UNPLAYABLE
    return _LIGHT if low + high < most else 0


@kernel("void(i4[:,::1], i4[:,::1], u4[::1])", nogil=True)
def _look(inputs, labels, found):
    seen = np.zeros((VALUES + 1, VALUES + 1), np.bool_)
    for row in range(inputs.shape[0]):
        tokens, label = inputs[row], labels[row]
        broken = _vocabulary(tokens, label)
        if broken & (_INPUT_VOCAB | _LABEL_VOCAB):
            found[row] = broken
            continue
        seen[:] = False
        on_table, table = _pairs(tokens, 0, HAND, seen)
        in_hand, hand = _pairs(tokens, HAND, LEFT, seen)
        broken |= on_table | in_hand
        if table + hand != HAND_SIZE:
            broken |= _SEVEN
        if not broken & (_HALF | _GAP):
            broken |= _chain(tokens, table)
        broken |= _position(tokens, label, table == 0)
        broken |= _move(tokens, label, table == 0)
        found[row] = broken
