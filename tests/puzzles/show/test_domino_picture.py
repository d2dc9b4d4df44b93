"""Chains and hands of dominoes."""

import re

import numpy as np
import pytest

from gristmill.puzzles.show.cells import WRONG
from gristmill.puzzles.show.domino_picture import decoded, move, oriented
from tests.drawings import texts
from tests.puzzles.small_datasets import domino, domino_tokens

_ROWS = domino()


def test_a_row_is_decoded() -> None:
    scene = decoded(_ROWS.inputs[0], _ROWS.labels[0])
    assert scene.table == [(1, 5), (1, 3), (3, 3)]
    assert scene.hand == [(0, 0), (5, 6), (2, 4), (3, 6)]
    assert (scene.ends, scene.chosen, scene.position, scene.rest) == ((5, 3), (5, 6), 1, 0)


def test_an_empty_table_has_no_ends() -> None:
    scene = decoded(_ROWS.inputs[1], _ROWS.labels[1])
    assert (scene.table, scene.ends, scene.position) == ([], (-1, -1), 3)


def test_a_label_behind_the_position_is_counted() -> None:
    label = _ROWS.labels[0].copy()
    label[[3, 71]] = 1
    assert decoded(_ROWS.inputs[0], label).rest == 2


def test_tiles_are_turned_so_that_equal_halves_meet() -> None:
    assert oriented([(1, 5), (1, 3), (3, 3)], 5) == [((5, 1), True), ((1, 3), True), ((3, 3), True)]
    assert oriented([(1, 5), (0, 3)], 5) == [((5, 1), True), ((0, 3), False)]


@pytest.mark.parametrize(
    ("played", "words"),
    [
        ((5, 6, 1), "play 5-6 left"),
        ((3, 6, 2), "play 3-6 right"),
        ((0, 0, 3), "play 0-0 first"),
        ((-1, -1, 0), "no move"),
        ((5, 6, 7), "play 5-6 position 7"),
        ((5, -1, 1), "play 5-? left"),
    ],
)
def test_the_move_is_said(played: tuple[int, int, int], words: str) -> None:
    given, wanted = domino_tokens([(5, 5)], [(5, 6)], (5, 5), played)
    assert move(decoded(given, wanted)) == words


def test_the_chosen_tile_is_marked_once() -> None:
    drawing = decoded(_ROWS.inputs[0], _ROWS.labels[0]).large("t", ["n"])
    assert len(re.findall(r'<rect [^>]*fill="#f2a65a"', drawing)) == 1
    assert {"3 tiles on the table", "4 tiles in the hand · play 5-6 left", "5", "3"} <= set(
        texts(drawing)
    )
    assert WRONG not in drawing
    # 5 and 1, 1 and 3, twice 3 on the table; 0, 0, 5, 6, 2, 4, 3, 6 in the hand.
    assert drawing.count("h0M") + drawing.count('h0"') == 16 + 26


def test_a_tile_that_breaks_the_chain_is_red() -> None:
    given, wanted = domino_tokens([(1, 5), (0, 3)], [(3, 5)], (5, 3), (3, 5, 1))
    assert WRONG in decoded(given, wanted).large()


def test_a_tile_that_is_not_in_the_hand_is_said() -> None:
    given, wanted = domino_tokens([], [(3, 5)], (-1, -1), (3, 6, 3))
    assert "1 tile in the hand · play 3-6 first (not in the hand)" in texts(
        decoded(given, wanted).large()
    )


def test_any_tokens_are_drawn() -> None:
    noise = np.random.default_rng(0).integers(-3, 300, (50, 2, 72))
    for given, wanted in noise:
        assert "?" in texts(decoded(given, wanted).large())
    full = np.full(72, 7)
    assert len(decoded(full, full).large()) < 40_000
