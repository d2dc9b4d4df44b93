"""Rows as text for a terminal."""

import io

import numpy as np
import pytest
from rich.console import Console

from gristmill.puzzles.show.boards import board
from tests.puzzles.small_datasets import SMALL, domino_tokens, maze, sudoku


def _lines(kind: str, given: object, wanted: object, width: int = 100) -> list[str]:
    """The text that a terminal without colours shows."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(board(kind, np.asarray(given), np.asarray(wanted)))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_grids_of_arc_are_digits_with_their_border() -> None:
    small = SMALL["arc"]()
    assert _lines("arc", small.inputs[0], small.labels[0])[:4] == [
        "input 2 × 3    output 1 × 1",
        "2 1 0 ·        9 ·",
        "3 3 4 ·        ·",
        "· · ·",
    ]


def test_a_grid_that_was_moved_says_where_it_begins() -> None:
    small = SMALL["arc"]()
    lines = _lines("arc", small.inputs[2], small.labels[2])
    assert lines[0] == "input 2 × 3 at (2, 5)    output 1 × 1 at (2, 5)"
    assert lines[1] == "0 1 3 ·                  9 ·"


def test_grids_are_below_each_other_where_the_terminal_is_narrow() -> None:
    small = SMALL["arc"]()
    lines = _lines("arc", small.inputs[0], small.labels[0], width=20)
    assert lines.index("input 2 × 3") < lines.index("output 1 × 1")


def test_a_token_that_is_no_colour_is_a_question_mark() -> None:
    small = SMALL["arc"]()
    row = small.inputs[0].copy()
    row[0] = 12
    assert _lines("arc", row, small.labels[0])[1].startswith("? 1 0 ·")


def test_boards_of_sudoku_are_next_to_each_other() -> None:
    small = sudoku()
    lines = _lines("sudoku", small.inputs[0], small.labels[0])
    assert lines[0] == "30 givens                 solution, givens bold, ! against the rules"
    assert lines[1] == ". . . │ 1 . 7 │ . 9 .     6 4 8 │ 1 5 7 │ 2 9 3"
    assert lines[4] == "──────┼───────┼──────     ──────┼───────┼──────"
    assert len([line for line in lines if line]) == 12
    assert not any("!" in line for line in lines[1:])


def test_digits_against_the_rules_are_marked() -> None:
    small = sudoku()
    label = small.labels[0].copy()
    label[3] = 7
    label[80] = 1
    lines = _lines("sudoku", small.inputs[0], label)
    assert lines[1].endswith("6!4 8 │ 6!5 7 │ 2 9 3")
    assert lines[11].endswith("3 6 .!")


def test_a_maze_has_walls_path_start_and_goal() -> None:
    small = maze()
    assert _lines("maze", small.inputs[0], small.labels[0])[:5] == [
        "4 × 4, path of 5 cells",
        "S ██",
        "o ██o G",
        "o o o ██",
        "████████",
    ]


def test_a_path_through_a_wall_is_marked() -> None:
    small = maze()
    label = small.labels[0].copy()
    label[1] = 5
    assert _lines("maze", small.inputs[0], label)[1] == "S ?!"


def test_a_hand_shows_what_can_be_played_and_what_is() -> None:
    small = SMALL["domino"]()
    assert _lines("domino", small.inputs[0], small.labels[0])[:8] == [
        "table, each tile turned so that equal halves meet",
        "  5 ← [5|1][1|3][3|3] → 3",
        "hand: * can be played, >> the label",
        "    [0|0]",
        ">>* [5|6]",
        "    [2|4]",
        "  * [3|6]",
        "play 5-6 left",
    ]


def test_every_tile_can_be_played_on_an_empty_table() -> None:
    given, wanted = domino_tokens([], [(0, 0), (1, 2)], (-1, -1), (1, 2, 3))
    lines = _lines("domino", given, wanted)
    assert lines[1:5] == [
        "  – ← (empty) → –",
        "hand: * can be played, >> the label",
        "  * [0|0]",
        ">>* [1|2]",
    ]


def test_a_tile_that_breaks_the_chain_is_marked() -> None:
    given, wanted = domino_tokens([(1, 5), (0, 3)], [(3, 5)], (5, 3), (3, 5, 1))
    assert "[5|1][0|3]!" in _lines("domino", given, wanted)[1]


def test_other_kinds_are_numbers() -> None:
    assert _lines("towers", [3, 0, 140], [1, 2, 3])[:2] == [
        "input, 3 tokens, 0 is ·",
        "  3   · 140",
    ]
    assert any("… and 76 more tokens" in line for line in _lines("x", [1] * 1100, [2] * 1100))


@pytest.mark.parametrize("kind", SMALL)
def test_any_tokens_are_shown(kind: str) -> None:
    small = SMALL[kind]()
    noise = np.random.default_rng(2).integers(-4, 2**31 - 1, (5, 2, small.inputs.shape[1]))
    for given, wanted in noise:
        assert _lines(kind, given, wanted)


@pytest.mark.parametrize("kind", ["arc", "sudoku", "maze", "domino"])
def test_colours_are_used_where_the_terminal_has_them(kind: str) -> None:
    small = SMALL[kind]()
    console = Console(file=io.StringIO(), width=100, color_system="truecolor", force_terminal=True)
    console.print(board(kind, small.inputs[0], small.labels[0]))
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[" in console.file.getvalue()
