"""The solver counts the solutions that a plain search finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gristmill.puzzles.domains.sudoku import solver
from gristmill.puzzles.domains.sudoku.board import text_of
from gristmill.puzzles.domains.sudoku.solver import solutions_of
from tests.puzzles import sudoku
from tests.puzzles.sudoku import board_of

HARD = {
    "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..": (
        "812753649943682175675491283154237896369845721287169534521974368438526917796318452"
    ),
    "..............3.85..1.2.......5.7.....4...1...9.......5......73..2.1........4...9": (
        "987654321246173985351928746128537694634892157795461832519286473472319568863745219"
    ),
}


def test_counts_are_those_of_a_plain_search() -> None:
    dice = random.Random(2)
    boards = []
    for question, answer in sudoku.pairs(0, 6):
        boards.append(question)
        clues = [cell for cell in range(81) if question[cell] != "0"]
        for count in (1, 2, 4):
            gone = set(dice.sample(clues, count))
            boards.append("".join("0" if k in gone else question[k] for k in range(81)))
        wrong = dice.choice(clues)
        other = str(int(question[wrong]) % 9 + 1)
        boards += [question[:wrong] + other + question[wrong + 1 :], answer]
    found, counts, _ = solutions_of(np.array([board_of(board) for board in boards]))
    expected = [sudoku.solutions(board) for board in boards]
    expected = [each if _keeps(board) else [] for board, each in zip(boards, expected, strict=True)]
    assert counts.tolist() == [len(each) for each in expected]
    for row, each in enumerate(expected):
        if each:
            # The first solution may be any of several.
            text = text_of(found[row])
            assert sudoku.solutions(text) == [text] and _keeps(text)
            assert all(a in ("0", b) for a, b in zip(boards[row], text, strict=True))
            assert len(each) > 1 or text == each[0]
        else:
            assert not found[row].any()
    assert set(counts.tolist()) == {0, 1, 2}


def _keeps(board: str) -> bool:
    """Whether no clue is twice in a unit."""
    return not [name for name in sudoku.findings([1] * 81, _tokens(board)) if "_dup_" in name]


def _tokens(board: str) -> list[int]:
    return [int(cell) + 1 for cell in board]


@pytest.mark.parametrize("question", HARD)
def test_hard_boards_are_solved(question: str) -> None:
    found, counts, guesses = solutions_of(board_of(question)[None])
    assert (text_of(found[0]), counts.tolist()) == (HARD[question], [1])
    assert guesses[0] < 1000


def test_a_blank_board_has_many_solutions_and_counts_stop_where_asked() -> None:
    blank = np.zeros((1, 81), np.uint8)
    assert solutions_of(blank)[1].tolist() == [2]
    assert solutions_of(blank, 1)[1].tolist() == [1]
    assert solutions_of(blank, 50)[1].tolist() == [50]


def test_boards_that_break_a_rule_have_no_solution() -> None:
    boards = ["11" + "0" * 79, "1" + "0" * 8 + "1" + "0" * 71, "1" + "0" * 9 + "1" + "0" * 70]
    boards.append("123456780" + "0" * 17 + "9" + "0" * 54)
    assert solutions_of(np.array([board_of(board) for board in boards]))[1].tolist() == [0] * 4


@pytest.mark.slow
def test_a_board_that_takes_too_long_is_given_up() -> None:
    hostile = ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4........."
    _, counts, guesses = solutions_of(board_of(hostile)[None])
    assert counts.tolist() == [solver.GAVE_UP]
    assert guesses[0] == solver.MOST_GUESSES + 1
