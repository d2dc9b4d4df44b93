"""Domino games beside the same game in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gristmill.puzzles.domains.domino_findings import findings
from gristmill.puzzles.domains.domino_game import game_keys, games
from gristmill.puzzles.domains.domino_rows import Scenario
from gristmill.puzzles.domains.source_key import source_key
from tests.puzzles.domino_oracle import encoded
from tests.puzzles.plain_draws import Stream

TILES = [(low, high) for low in range(7) for high in range(low, 7)]


def attempt(stream: Stream) -> Scenario | None:
    """One scenario, None where no tile can be played."""
    tiles, hand = TILES.copy(), []
    for slot in range(7):
        other = slot + stream.below(28 - slot)
        hand.append(tiles[other])
        tiles[other] = tiles[slot]
    chain: list[tuple[int, int]] = []
    ends: tuple[int, int] | None = None
    for _ in range(stream.below(11)):
        playable = [tile for tile in hand if ends is None or set(tile) & set(ends)]
        if not playable:
            break
        tile = playable[stream.below(len(playable))]
        hand.remove(tile)
        if ends is None:
            chain, ends = [tile], tile
            continue
        sides = [side for side in (0, 1) if ends[side] in tile]
        side = sides[stream.below(2)] if len(sides) == 2 else sides[0]
        other_half = tile[1] if tile[0] == ends[side] else tile[0]
        chain = [tile, *chain] if side == 0 else [*chain, tile]
        ends = (other_half, ends[1]) if side == 0 else (ends[0], other_half)
    playable = [tile for tile in hand if ends is None or set(tile) & set(ends)]
    if not playable:
        return None
    most = max(map(sum, playable))
    heaviest = [tile for tile in playable if sum(tile) == most]
    move = heaviest[stream.below(len(heaviest))]
    position = 3 if ends is None else 1 if ends[0] in move else 2
    return Scenario(tuple(chain), tuple(hand), ends, move, position)


def game(key: int) -> Scenario:
    stream = Stream(key, 0)
    while (scenario := attempt(stream)) is None:
        pass
    return scenario


def test_games_are_those_of_plain_python() -> None:
    keys = game_keys(42, "test", np.arange(400))
    inputs, labels = games(keys)
    for row, key in enumerate(keys.tolist()):
        expected = encoded(game(key))
        assert inputs[row].tolist() == expected[0].tolist()
        assert labels[row].tolist() == expected[1].tolist()


def test_a_key_is_the_state_of_a_draw_of_the_split() -> None:
    keys = game_keys(7, "train", np.array([5, 0, 7]))
    assert keys.dtype == np.uint64
    split = source_key(7, "domino", "train")
    assert keys.tolist() == [Stream(split, number).state for number in (5, 0, 7)]


def test_a_game_does_not_depend_on_those_before_it() -> None:
    keys = game_keys(1, "train", np.arange(50))
    whole, alone = games(keys), games(keys[30:31])
    assert np.array_equal(whole[0][30:31], alone[0])
    assert np.array_equal(whole[1][30:31], alone[1])


def test_many_games_break_no_rule_and_have_the_mix_of_the_original() -> None:
    """The original has 3771 moves on the left, 3993 on the right, 2236 first, of 10,000."""
    inputs, labels = games(game_keys(3, "test", np.arange(10_000)))
    assert not findings(inputs, labels).any()
    mix = Counter(labels[:, 2].tolist())
    for position, expected in ((1, 3771), (2, 3993), (3, 2236)):
        assert abs(mix[position] - expected) < 250
    hands = Counter((inputs[:, 56:70] > 0).sum(1).tolist())
    assert set(hands) == {2, 4, 6, 8, 10, 12, 14}
