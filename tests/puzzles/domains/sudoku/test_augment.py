"""Groups of augmentations: the draws of the page in order, none twice, and any subset alike."""

from __future__ import annotations

import numpy as np

from gristmill.puzzles.domains.sudoku.augment import groups
from gristmill.puzzles.domains.sudoku.board import board_of
from gristmill.puzzles.domains.sudoku.symmetry import key_of
from tests.puzzles import sudoku

PAIRS = sudoku.pairs(0, 4)
QUESTIONS, ANSWERS = (np.array([board_of(pair[k]) for pair in PAIRS]) for k in (0, 1))
KEYS = np.array([key_of(42, question) for question, _ in PAIRS], np.uint64)


def test_a_group_is_the_source_and_its_draws() -> None:
    inputs, labels, draws, sizes = groups(QUESTIONS, ANSWERS, KEYS, 5)
    assert sizes.tolist() == [6] * 4 and draws.tolist() == [0, 1, 2, 3, 4, 5] * 4
    for row, (given, label) in enumerate(zip(inputs, labels, strict=True)):
        question, answer = PAIRS[row // 6]
        boards = [question, answer]
        if row % 6:
            boards = sudoku.augmented(42, question, boards, row % 6)
        assert (np.array([given, label]) == sudoku.tokens(boards)).all()


def test_a_source_alone_gives_the_same_group() -> None:
    inputs, labels, draws, _ = groups(QUESTIONS, ANSWERS, KEYS, 7)
    alone = groups(QUESTIONS[2:3], ANSWERS[2:3], KEYS[2:3], 7)
    for whole, part in zip((inputs, labels, draws), alone[:3], strict=True):
        assert (whole[16:24] == part).all()


def test_without_augmentations_a_group_is_the_source() -> None:
    inputs, labels, draws, sizes = groups(QUESTIONS, ANSWERS, KEYS, 0)
    assert (inputs == QUESTIONS + 1).all() and (labels == ANSWERS + 1).all()
    assert draws.tolist() == [0] * 4 and sizes.tolist() == [1] * 4


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
