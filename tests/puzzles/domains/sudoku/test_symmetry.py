"""Symmetries: drawn as the page says, and applied alike one by one and by the kernel."""

from __future__ import annotations

import numpy as np

from gristmill.puzzles.domains.sudoku.board import text_of
from gristmill.puzzles.domains.sudoku.solver import solutions_of
from gristmill.puzzles.domains.sudoku.symmetry import Symmetry, augmentation, groups, key_of
from tests.puzzles import sudoku
from tests.puzzles.sudoku import applied, board_of

PAIRS = sudoku.pairs(0, 3)


def symmetries(count: int) -> list[Symmetry]:
    return [augmentation(k % 3, PAIRS[k % 3][0], k + 1) for k in range(count)]


def test_a_draw_is_the_one_of_the_page() -> None:
    for seed, (question, answer) in zip((0, 42, 2**63 - 1), PAIRS, strict=True):
        for number in (1, 2, 3, 1000):
            symmetry = augmentation(seed, question, number)
            found = [text_of(applied(symmetry, board_of(board))) for board in (question, answer)]
            assert found == sudoku.augmented(seed, question, (question, answer), number)


def test_draw_zero_is_the_source() -> None:
    board = board_of(PAIRS[0][0])
    assert (applied(augmentation(42, PAIRS[0][0], 0), board) == board).all()


def test_a_symmetry_keeps_rules_clues_and_the_number_of_solutions() -> None:
    for symmetry in symmetries(12):
        for question, answer in PAIRS:
            asked, solved = (applied(symmetry, board_of(each)) for each in (question, answer))
            given, label = (asked + 1).tolist(), (solved + 1).tolist()
            assert sudoku.findings(given, label) == set()
            assert np.count_nonzero(asked) == 81 - question.count("0")
            found, counts, _ = solutions_of(asked[None])
            assert counts.tolist() == [1] and (found[0] == solved).all()


FOUR = sudoku.pairs(0, 4)
QUESTIONS, ANSWERS = (np.array([board_of(pair[k]) for pair in FOUR]) for k in (0, 1))
KEYS = np.array([key_of(42, question) for question, _ in FOUR], np.uint64)


def test_a_group_is_the_source_and_its_draws() -> None:
    inputs, labels, draws, sizes = groups(QUESTIONS, ANSWERS, KEYS, 5)
    assert sizes.tolist() == [6] * 4 and draws.tolist() == [0, 1, 2, 3, 4, 5] * 4
    for row, (given, label) in enumerate(zip(inputs, labels, strict=True)):
        question, answer = FOUR[row // 6]
        boards = [question, answer]
        if row % 6:
            boards = sudoku.augmented(42, question, boards, row % 6)
        assert (np.array([given, label]) == sudoku.tokens(boards)).all()


def test_an_augmentation_that_repeats_an_example_is_passed_over() -> None:
    # Every symmetry keeps a blank board, so that its group has one example.
    blank = np.zeros((2, 81), np.uint8)
    inputs, labels, draws, sizes = groups(blank, blank, KEYS[:2], 9)
    assert (inputs.shape, labels.shape) == ((2, 81), (2, 81))
    assert sizes.tolist() == [1, 1] and draws.tolist() == [0, 0]
    # One clue has 81 places and nine digits: some of 400 draws repeat an earlier one.
    clue = blank.copy()
    clue[:, 40] = 5
    inputs, _, draws, sizes = groups(clue, blank, KEYS[:2], 400)
    assert sizes[0] == 401 and draws[400] > 400
    assert len(np.unique(inputs[:401], axis=0)) == 401
    assert (np.diff(draws[:401]) > 0).all()
