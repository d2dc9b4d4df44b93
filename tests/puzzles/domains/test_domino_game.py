"""Domino games beside the same game in plain Python."""

from collections import Counter
from math import factorial

import numpy as np
import pytest

from gristmill.puzzles.domains.domino_augment import Change, augmentation, augmented, canonical
from gristmill.puzzles.domains.domino_game import (
    RULES,
    findings,
    game_keys,
    games,
    mask,
    rule_names,
)
from gristmill.puzzles.domains.domino_rows import ENCODING, FIRST, NONE, ON_RIGHT, Scenario, decoded
from gristmill.puzzles.domains.randomness import source_key
from tests.puzzles.domino_oracle import broken, encoded, twins
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


def test_games_are_those_of_plain_python_and_a_key_is_the_state_of_a_draw():
    keys = game_keys(42, "test", np.arange(400))
    inputs, labels = games(keys)
    for row, key in enumerate(keys.tolist()):
        stream = Stream(key, 0)
        while (scenario := attempt(stream)) is None:
            pass
        expected = encoded(scenario)
        assert inputs[row].tolist() == expected[0].tolist()
        assert labels[row].tolist() == expected[1].tolist()
    keys = game_keys(7, "train", np.array([5, 0, 7]))
    assert keys.dtype == np.uint64
    split = source_key(7, "domino", "train")
    assert keys.tolist() == [Stream(split, number).state for number in (5, 0, 7)]


def test_many_games_break_no_rule_and_have_the_mix_of_the_original():
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


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({}, set()),
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
def test_a_changed_row_breaks_the_rules_that_it_should(fields, rules):
    assert changed(**fields) == rules


def test_ends_without_a_table_are_found():
    hand = (*HAND, (5, 5), (6, 6))
    good = Scenario((), hand, None, (6, 6), 3)
    assert changed(good) == set()
    assert changed(good, ends=(6, 5)) == {"ends_not_of_table"}
    found = findings(np.zeros((2, 71), np.uint8), np.zeros((2, 71), np.uint8))
    assert [rule_names(int(each)) for each in found] == [["seq_len_mismatch"]] * 2
    with pytest.raises(ValueError, match=r"\(72,\)"):
        decoded(np.zeros(71, np.uint8), np.zeros(72, np.uint8))


def test_tokens_outside_the_vocabulary_and_in_the_tail_are_found():
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


def test_rows_of_another_length_break_that_rule_alone():
    found = findings(np.zeros((2, 71), np.uint8), np.zeros((2, 71), np.uint8))
    assert [rule_names(int(each)) for each in found] == [["seq_len_mismatch"]] * 2


def test_findings_are_those_of_plain_python():
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


def test_a_mask_has_the_bits_of_its_rules_and_each_position_holds_what_the_format_says():
    assert rule_names(mask(("tile_twice", "position_invalid"))) == [
        "position_invalid",
        "tile_twice",
    ]
    inputs, labels = encoded(CHAIN)
    assert inputs.tolist() == [3, 4, 1, 3, *[0] * 52, 1, 1, 6, 7, *[0] * 10, 4, 1]
    assert labels.tolist() == [1, 1, 2, *[0] * 69]
    assert inputs.dtype == labels.dtype == np.uint8
    assert (ENCODING.seq_len, ENCODING.vocab_size, ENCODING.pad_id) == (72, 8, 0)
    assert ENCODING.ignore_label_id == 0


CHAIN = Scenario(
    table=((2, 3), (0, 2)), hand=((0, 0), (5, 6)), ends=(3, 0), move=(0, 0), position=ON_RIGHT
)


@pytest.mark.parametrize(
    "scenario",
    [
        CHAIN,
        Scenario(table=(), hand=((0, 1),), ends=None, move=(0, 1), position=FIRST),
        Scenario(table=((6, 6),), hand=((0, 1),), ends=(6, 6), move=None, position=NONE),
        Scenario(tuple((k % 7, 6) for k in range(28)), ((1, 2),) * 7, (0, 1), (1, 2), 1),
    ],
)
def test_a_scenario_comes_back_from_its_row(scenario):
    assert decoded(*encoded(scenario)) == scenario


KINDS = ("reversal", "modular")


def drawn(key: int, number: int, kind: str) -> Change:
    stream = Stream(key, number)
    if kind == "modular":
        return Change(offset=1 + stream.below(6))
    is_reversed = bool(stream.below(2))
    order = list(range(7))
    stream.shuffle(order)
    return Change(is_reversed, tuple(order))


def applied(scenario: Scenario, change: Change) -> Scenario:
    def shifted(tile: tuple[int, int]) -> tuple[int, int]:
        return (tile[0] + change.offset) % 7, (tile[1] + change.offset) % 7

    table, ends, position = scenario.table, scenario.ends, scenario.position
    if change.is_reversed:
        table = table[::-1]
        ends = ends and (ends[1], ends[0])
        if len(table) != 1 or table[0][0] != table[0][1]:  # one double has no other side
            position = {0: 0, 1: 2, 2: 1, 3: 3}[position]
    hand = [scenario.hand[slot] for slot in change.order if slot < len(scenario.hand)]
    return Scenario(
        tuple(map(shifted, table)),
        tuple(map(shifted, hand)),
        ends and shifted(ends),
        scenario.move and shifted(scenario.move),
        position,
    )


def group(scenario: Scenario, key: int, num_aug: int, kind: str) -> list[tuple[int, Scenario]]:
    """The scenario and its augmentations with the numbers of their draws."""
    rows, seen = [(0, scenario)], {encoded(scenario)[0].tobytes()}
    for number in range(1, 5 * num_aug + 1):
        if len(rows) > num_aug:
            break
        made = applied(scenario, drawn(key, number, kind))
        if (tokens := encoded(made)[0].tobytes()) not in seen:
            seen.add(tokens)
            rows.append((number, made))
    return rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_aug", [1, 4, 60])
def test_augmentations_are_those_of_plain_python(kind, num_aug):
    keys = game_keys(2, "train", np.arange(60))
    sources = games(keys)
    inputs, labels, draws, counts = augmented(*sources, keys, num_aug, kind)
    expected = [
        each
        for row, key in enumerate(keys.tolist())
        for each in group(decoded(sources[0][row], sources[1][row]), key, num_aug, kind)
    ]
    found = [decoded(*pair) for pair in zip(inputs, labels, strict=True)]
    assert list(zip(draws.tolist(), found, strict=True)) == expected
    assert counts.sum() == len(inputs)
    assert draws[np.cumsum(counts) - counts].tolist() == [0] * len(keys)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parameters_of_a_draw_can_be_read_again(kind):
    (key,) = game_keys(9, "train", np.array([4])).tolist()
    for number in (1, 2, 77):
        assert augmentation(9, "train:4", number, kind) == drawn(key, number, kind)
    assert augmentation(9, "train:4", 0, kind) == Change()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("reversal", []), ("modular", ["label_not_heaviest", "tile_not_low_high"])],
)
def test_an_augmentation_breaks_the_rules_that_its_help_names_alone(kind, expected):
    keys = game_keys(5, "train", np.arange(500))
    inputs, labels, *_ = augmented(*games(keys), keys, 5, kind)
    assert rule_names(int(np.bitwise_or.reduce(findings(inputs, labels)))) == expected


def test_every_form_of_a_small_hand_is_found_and_no_more():
    """Three tiles in the hand have six orders; the chain has two directions."""
    scenario = Scenario(
        ((1, 2), (2, 3), (3, 5), (5, 6)), ((0, 1), (4, 6), (0, 0)), (1, 6), (4, 6), 2
    )
    inputs, labels = (array[None] for array in encoded(scenario))
    keys = np.array([99], np.uint64)
    made, _, draws, counts = augmented(inputs, labels, keys, 10_000, "reversal")
    assert counts.tolist() == [2 * factorial(3)]
    assert {tuple(row) for row in made.tolist()} == twins(inputs[0].tolist())
    assert (np.diff(draws) > 0).all()


@pytest.mark.parametrize(
    ("table", "ends", "forms"), [((), None, 2), (((3, 3),), (3, 3), 2), (((3, 4),), (3, 4), 4)]
)
def test_a_chain_that_is_the_same_from_both_sides_has_no_second_direction(table, ends, forms):
    scenario = Scenario(table, ((3, 6), (3, 5)), ends, (3, 6), 1 if table else 3)
    inputs, labels = (array[None] for array in encoded(scenario))
    for key in range(9):
        made, moves, *_ = augmented(inputs, labels, np.array([key], np.uint64), 50, "reversal")
        assert len(made) == len(np.unique(made, axis=0)) == forms
        by_ends: dict[tuple[int, ...], set[int]] = {}
        for tokens, move in zip(made, moves, strict=True):
            by_ends.setdefault(tuple(tokens[70:].tolist()), set()).add(int(move[2]))
        expected = {(): {(0, 0): {3}}, (3, 3): {(4, 4): {1}}, (3, 4): {(4, 5): {1}, (5, 4): {2}}}
        assert by_ends == expected[ends or ()], "one situation has one label"


@pytest.mark.parametrize("kind", KINDS)
def test_a_situation_has_one_label_in_whatever_order_its_hand_is(kind):
    keys = game_keys(5, "train", np.arange(3000))
    inputs, labels = games(keys)
    chosen = (inputs[:, 2] == 0) & (inputs[:, 0] == inputs[:, 1]) & (inputs[:, 0] > 0)
    assert np.count_nonzero(chosen) > 20
    made = augmented(inputs[chosen], labels[chosen], keys[chosen], 6, kind)
    assert set(made[1][:, 2].tolist()) == {1}


def test_scenarios_have_one_canonical_form_if_and_only_if_they_are_the_same():
    keys = game_keys(8, "train", np.arange(300))
    inputs, _ = games(keys)
    short = (inputs[:, 56:70] > 0).sum(1) <= 8
    forms = canonical(inputs, "reversal")
    for tokens, form in zip(inputs[short][:40], forms[short], strict=False):
        same = np.array(sorted(twins(tokens.tolist())), np.uint8)
        assert set(canonical(same, "reversal").tolist()) == {int(form)}
    by_form: dict[int, set[tuple[int, ...]]] = {}
    for tokens, form in zip(inputs.tolist(), forms.tolist(), strict=True):
        hand = sorted(zip(tokens[56:70:2], tokens[57:70:2], strict=True))
        chain = list(zip(tokens[0:56:2], tokens[1:56:2], strict=True))
        chain = [tile for tile in chain if tile != (0, 0)]
        least = min(chain, chain[::-1])
        by_form.setdefault(form, set()).add((*sum(least, ()), 0, *sum(hand, ())))
    assert all(len(group) == 1 for group in by_form.values())
    everything = [each for group in by_form.values() for each in group]
    assert len(set(everything)) == len(everything)
    assert 0 not in by_form


def test_an_offset_leaves_the_modular_form_alone_and_an_empty_half_is_no_tile():
    keys = game_keys(8, "train", np.arange(200))
    inputs, labels = games(keys)
    made, _, _, counts = augmented(inputs, labels, keys, 6, "modular")
    forms = canonical(made, "modular")
    assert np.array_equal(forms, np.repeat(canonical(inputs, "modular"), counts))
    assert not np.array_equal(
        canonical(made, "reversal"), np.repeat(canonical(inputs, "reversal"), counts)
    )
    inputs, labels = encoded(CHAIN)
    inputs[2], inputs[71], labels[0] = 0, 0, 0
    found = decoded(inputs, labels)
    assert found.table == ((2, 3),)
    assert found.ends is None
    assert found.move is None
    table = tuple((k, k + 1) for k in range(6))
    tokens = encoded(Scenario((*table, (6, 6)), (), (0, 6), None, 0))[0]
    assert canonical(tokens[None], "reversal").tolist() == [0]
    tokens = encoded(Scenario(table, ((6, 6),), (0, 6), (6, 6), 2))[0]
    assert canonical(tokens[None], "reversal").tolist() != [0]
