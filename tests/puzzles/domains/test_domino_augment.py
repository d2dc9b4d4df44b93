"""Augmentations of Domino beside plain Python, and which scenarios are the same."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from gristmill.puzzles.domains.domino_augment import Change, augmentation, augmented, canonical
from gristmill.puzzles.domains.domino_game import findings, game_keys, games, rule_names
from gristmill.puzzles.domains.domino_rows import Scenario, decoded
from tests.puzzles.domino_oracle import encoded, twins
from tests.puzzles.plain_draws import Stream

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
def test_augmentations_are_those_of_plain_python(kind: str, num_aug: int) -> None:
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
def test_the_parameters_of_a_draw_can_be_read_again(kind: str) -> None:
    (key,) = game_keys(9, "train", np.array([4])).tolist()
    for number in (1, 2, 77):
        assert augmentation(9, "train:4", number, kind) == drawn(key, number, kind)
    assert augmentation(9, "train:4", 0, kind) == Change()


def test_a_reversal_breaks_no_rule() -> None:
    keys = game_keys(5, "train", np.arange(500))
    inputs, labels, *_ = augmented(*games(keys), keys, 5, "reversal")
    assert not findings(inputs, labels).any()


def test_a_modular_change_breaks_the_two_rules_that_its_help_names() -> None:
    keys = game_keys(5, "train", np.arange(500))
    inputs, labels, *_ = augmented(*games(keys), keys, 3, "modular")
    broken = np.bitwise_or.reduce(findings(inputs, labels))
    assert rule_names(int(broken)) == ["label_not_heaviest", "tile_not_low_high"]


def test_every_form_of_a_small_hand_is_found_and_no_more() -> None:
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
def test_a_chain_that_is_the_same_from_both_sides_has_no_second_direction(
    table: tuple[tuple[int, int], ...], ends: tuple[int, int] | None, forms: int
) -> None:
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
def test_a_situation_has_one_label_in_whatever_order_its_hand_is(kind: str) -> None:
    keys = game_keys(5, "train", np.arange(3000))
    inputs, labels = games(keys)
    chosen = (inputs[:, 2] == 0) & (inputs[:, 0] == inputs[:, 1]) & (inputs[:, 0] > 0)
    assert np.count_nonzero(chosen) > 20
    made = augmented(inputs[chosen], labels[chosen], keys[chosen], 6, kind)
    assert set(made[1][:, 2].tolist()) == {1}


def test_scenarios_have_one_canonical_form_if_and_only_if_they_are_the_same() -> None:
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


def test_an_offset_leaves_the_modular_form_alone_and_changes_the_other() -> None:
    keys = game_keys(8, "train", np.arange(200))
    inputs, labels = games(keys)
    made, _, _, counts = augmented(inputs, labels, keys, 6, "modular")
    forms = canonical(made, "modular")
    assert np.array_equal(forms, np.repeat(canonical(inputs, "modular"), counts))
    assert not np.array_equal(
        canonical(made, "reversal"), np.repeat(canonical(inputs, "reversal"), counts)
    )


def test_a_table_of_seven_tiles_has_no_canonical_form() -> None:
    table = tuple((k, k + 1) for k in range(6))
    tokens = encoded(Scenario((*table, (6, 6)), (), (0, 6), None, 0))[0]
    assert canonical(tokens[None], "reversal").tolist() == [0]
    tokens = encoded(Scenario(table, ((6, 6),), (0, 6), (6, 6), 2))[0]
    assert canonical(tokens[None], "reversal").tolist() != [0]
