"""Domino games beside the same game in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gristmill.puzzles.domains.domino_game import (
    RULES,
    findings,
    game_keys,
    games,
    mask,
    rule_names,
)
from gristmill.puzzles.domains.domino_rows import Scenario
from gristmill.puzzles.domains.source_key import source_key
from tests.puzzles.domino_oracle import broken, encoded
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


HAND = ((0, 3), (1, 4), (2, 5), (3, 3), (4, 4))
GOOD = Scenario(((1, 2), (2, 3)), HAND, (1, 3), (3, 3), 2)


def names(inputs: np.ndarray, labels: np.ndarray) -> set[str]:
    (found,) = findings(inputs[None], labels[None])
    return set(rule_names(int(found)))


def changed(scenario: Scenario = GOOD, **fields: object) -> set[str]:
    return names(*encoded(Scenario(**{**vars(scenario), **fields})))  # type: ignore[arg-type]


def test_a_good_row_breaks_nothing() -> None:
    assert changed() == set()


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"move": (5, 5)}, {"target_not_in_hand", "target_not_match_right_end"}),
        ({"move": (4, 1), "position": 1}, {"target_not_in_hand"}),
        ({"position": 1}, {"target_not_match_left_end"}),
        ({"move": (1, 4)}, {"target_not_match_right_end", "label_not_heaviest"}),
        ({"move": (1, 4), "position": 1}, {"label_not_heaviest"}),
        ({"move": (4, 4)}, {"target_not_match_right_end", "label_not_playable"}),
        ({"position": 3}, {"first_on_nonempty_table"}),
        ({"position": 0}, {"position_invalid"}),
        ({"position": 4}, {"position_invalid"}),
        ({"move": None, "position": 0}, {"move_missing"}),
        ({"move": None}, {"position_invalid", "move_missing"}),
        ({"ends": (3, 1)}, {"ends_not_of_table", "target_not_match_right_end"}),
        ({"table": ((1, 2), (4, 5))}, {"chain_not_connected"}),
        ({"table": ((1, 2), (3, 2))}, {"tile_not_low_high"}),
        ({"table": ((1, 2),)}, {"table_and_hand_not_seven", "ends_not_of_table"}),
        ({"hand": (*HAND[:4], (1, 2))}, {"tile_twice"}),
    ],
)
def test_a_changed_row_breaks_the_rules_that_it_should(
    fields: dict[str, object], rules: set[str]
) -> None:
    assert changed(**fields) == rules


def test_the_single_tile_of_a_table_may_lie_either_way() -> None:
    hand = ((0, 0), (0, 1), (1, 1), (2, 2), (3, 4), (5, 5))
    for ends in ((2, 6), (6, 2)):
        position = 1 + ends.index(2)
        assert names(*encoded(Scenario(((2, 6),), hand, ends, (2, 2), position))) == set()


def test_ends_without_a_table_are_found() -> None:
    hand = (*HAND, (5, 5), (6, 6))
    good = Scenario((), hand, None, (6, 6), 3)
    assert changed(good) == set()
    assert changed(good, ends=(6, 5)) == {"ends_not_of_table"}


def test_tokens_outside_the_vocabulary_and_in_the_tail_are_found() -> None:
    inputs, labels = (array.astype(np.int32) for array in encoded(GOOD))
    for value in (8, -1, 300, 256, 1 << 30):
        wrong = inputs.copy()
        wrong[0] = value
        assert names(wrong, labels) == {"input_out_of_vocab"}
        wrong = labels.copy()
        wrong[2] = value
        assert names(inputs, wrong) == {"label_out_of_vocab"}
    labels[71] = 1
    assert names(inputs, labels) == {"label_tail_not_zero"}


def test_half_a_tile_and_a_gap_are_found() -> None:
    inputs, labels = encoded(GOOD)
    half = inputs.copy()
    half[1] = 0
    assert names(half, labels) == {
        "half_empty_pair",
        "gap_between_tiles",
        "table_and_hand_not_seven",
    }
    gap = inputs.copy()
    gap[56:70] = np.roll(gap[56:70], 2)
    assert names(gap, labels) == {"gap_between_tiles"}


def test_rows_of_another_length_break_that_rule_alone() -> None:
    found = findings(np.zeros((2, 71), np.uint8), np.zeros((2, 71), np.uint8))
    assert [rule_names(int(each)) for each in found] == [["seq_len_mismatch"]] * 2


def test_findings_are_those_of_plain_python() -> None:
    """Rows with up to three changed tokens: every rule is broken somewhere."""
    generator = np.random.default_rng(5)
    inputs, labels = games(game_keys(1, "train", np.arange(1500)))
    rows, moves = inputs.astype(np.int32), labels.astype(np.int32)
    for row, move in zip(rows[300:], moves[300:], strict=True):
        for _ in range(generator.integers(1, 4)):
            if generator.integers(3):
                filled = np.flatnonzero(row)
                row[generator.choice(filled)] = generator.integers(0, 9)
            else:
                move[generator.integers(0, 4)] = generator.integers(0, 9)
    found = [set(rule_names(int(each))) for each in findings(rows, moves)]
    expected = [broken(*pair) for pair in zip(rows.tolist(), moves.tolist(), strict=True)]
    assert found == expected
    assert not any(found[:300])
    assert set().union(*found) == set(RULES) - {"seq_len_mismatch"}


def test_a_mask_has_the_bits_of_its_rules() -> None:
    assert rule_names(mask(("tile_twice", "position_invalid"))) == [
        "position_invalid",
        "tile_twice",
    ]
