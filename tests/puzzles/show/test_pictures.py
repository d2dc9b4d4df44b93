"""Chains and hands of dominoes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gristmill.puzzles.show.cells import WRONG
from gristmill.puzzles.show.pictures import (
    COLUMNS,
    TokenTable,
    columns_of,
    decoded,
    move,
    oriented,
    tokens,
)
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


def test_tokens_of_uint8_do_not_overflow() -> None:
    assert (tokens(np.array([[0, 255]], np.uint8)) - 1).tolist() == [-1, 254]


@pytest.mark.parametrize(
    ("count", "columns"),
    [(0, COLUMNS), (1, 1), (2, COLUMNS), (81, 9), (1024, 32), (1089, COLUMNS), (72, COLUMNS)],
)
def test_squares_are_shown_as_squares(count: int, columns: int) -> None:
    assert columns_of(count) == columns


def test_the_numbers_of_both_rows_are_shown_and_zero_is_empty() -> None:
    drawing = TokenTable(tokens([3, 0, 140]), tokens([7, 8, 0])).large("t", ["n"])
    assert texts(drawing) == ["t", "input, 3 tokens", "3", "140", "label", "7", "8", "n"]


def test_a_square_has_its_label_beside_the_input() -> None:
    drawing = TokenTable(np.arange(9), np.arange(9)).large()
    assert "label" in texts(drawing)
    assert drawing.count("<g ") == 2


@pytest.mark.parametrize("count", [0, 1, 71, 1024, 1025, 50_000])
def test_any_length_is_drawn_and_the_rest_is_counted(count: int) -> None:
    row = np.arange(count) % 1000
    drawing = TokenTable(row, row).large()
    more = [text for text in texts(drawing) if text.startswith("… and")]
    assert more == ([f"… and {count - 1024:,} more tokens"] if count > 1024 else [])
    assert len(drawing) < 120_000
