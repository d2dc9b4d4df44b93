"""Domino in plain Python: what a row breaks, written from the rules, without arrays or kernels."""

from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np

from gristmill.puzzles.domains.domino_rows import Scenario


def broken(inputs: Sequence[int], labels: Sequence[int]) -> set[str]:
    """Names of the rules that a row breaks."""
    outside = set()
    if any(not 0 <= token <= 7 for token in inputs):
        outside.add("input_out_of_vocab")
    if any(not 0 <= token <= 7 for token in labels):
        outside.add("label_out_of_vocab")
    rest = {"label_tail_not_zero"} if any(labels[3:]) else set()
    if outside:
        return outside | rest
    table, found = _tiles(inputs[:56])
    hand, more = _tiles(inputs[56:70])
    found |= more | rest
    everything = [frozenset(tile) for tile in table + hand]
    if len(set(everything)) < len(everything):
        found.add("tile_twice")
    if len(everything) != 7:
        found.add("table_and_hand_not_seven")
    if any(low > high for low, high in table + hand):
        found.add("tile_not_low_high")
    ends = (inputs[70], inputs[71])
    if not found & {"half_empty_pair", "gap_between_tiles"}:
        found |= _chain(table, ends)
    return found | _move(table, hand, ends, labels)


def _tiles(tokens: Sequence[int]) -> tuple[list[tuple[int, int]], set[str]]:
    pairs = [(tokens[k], tokens[k + 1]) for k in range(0, len(tokens), 2)]
    found = set()
    if any(pair.count(0) == 1 for pair in pairs):
        found.add("half_empty_pair")
    whole = [0 not in pair for pair in pairs]
    if whole != sorted(whole, reverse=True):
        found.add("gap_between_tiles")
    return [pair for pair in pairs if 0 not in pair], found


def _chain(table: list[tuple[int, int]], ends: tuple[int, int]) -> set[str]:
    if not table:
        return {"ends_not_of_table"} if any(ends) else set()
    possible = set()
    ways: list[list[tuple[int, int]]] = [[]]
    for low, high in table:
        ways = [
            [*way, tile]
            for way in ways
            for tile in {(low, high), (high, low)}
            if not way or way[-1][1] == tile[0]
        ]
    for turns in ways:
        if all(one[1] == two[0] for one, two in pairwise(turns)):
            possible.add((turns[0][0], turns[-1][1]))
    if not possible:
        return {"chain_not_connected"}
    return set() if ends in possible else {"ends_not_of_table"}


def _move(
    table: list[tuple[int, int]],
    hand: list[tuple[int, int]],
    ends: tuple[int, int],
    labels: Sequence[int],
) -> set[str]:
    tile, position = (labels[0], labels[1]), labels[2]
    found = set()
    named = tile != (0, 0)
    if position > 3 or named != (position > 0) or tile.count(0) == 1:
        found.add("position_invalid")
    else:
        if position == 1 and ends[0] not in tile:
            found.add("target_not_match_left_end")
        if position == 2 and ends[1] not in tile:
            found.add("target_not_match_right_end")
        if position == 3 and table:
            found.add("first_on_nonempty_table")
    playable = [each for each in hand if not table or set(each) & set(ends)]
    if tile[0] == 0:
        return found | ({"move_missing"} if playable else set())
    if tile not in hand:
        return found | {"target_not_in_hand"}
    if tile not in playable:
        return found | {"label_not_playable"}
    if sum(tile) < max(map(sum, playable)):
        found.add("label_not_heaviest")
    return found


def twins(inputs: Sequence[int]) -> set[tuple[int, ...]]:
    """Every input that is the same scenario: both directions, all orders of the hand."""
    table = [tuple(inputs[k : k + 2]) for k in range(0, 56, 2) if inputs[k]]
    hand = [tuple(inputs[k : k + 2]) for k in range(56, 70, 2) if inputs[k]]
    found = set()
    for chain, ends in ((table, inputs[70:72]), (table[::-1], inputs[70:72][::-1])):
        for order in permutations(hand):
            found.add((*_flat(chain, 56), *_flat(order, 14), *ends))
    return found


def encoded(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """The row of a scenario: input and label, uint8 [72] each."""

    def flat(tiles: Sequence[tuple[int, int]], size: int) -> list[int]:
        return _flat([(low + 1, high + 1) for low, high in tiles], size)

    ends, move = ([each] if each else [] for each in (scenario.ends, scenario.move))
    given = [*flat(scenario.table, 56), *flat(scenario.hand, 14), *flat(ends, 2)]
    wanted = [*flat(move, 2), scenario.position, *[0] * 69]
    return np.array(given, np.uint8), np.array(wanted, np.uint8)


def _flat(tiles: Sequence[tuple[int, ...]], size: int) -> list[int]:
    flat = [half for tile in tiles for half in tile]
    return flat + [0] * (size - len(flat))
