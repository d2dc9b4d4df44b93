"""Twins have one invariant and one canonical form, others have not."""

from __future__ import annotations

import random
from itertools import permutations

import numpy as np
import pytest

from gristmill.puzzles.domains.sudoku.board import text_of
from gristmill.puzzles.domains.sudoku.canonical import canonical_forms, invariants
from gristmill.puzzles.domains.sudoku.symmetry import augmentation
from tests.puzzles import sudoku
from tests.puzzles.sudoku import applied, board_of

PAIRS = sudoku.pairs(0, 6)


def _boards() -> dict[str, np.ndarray]:
    boards = {f"puzzle {k}": board_of(question) for k, (question, _) in enumerate(PAIRS)}
    boards["answer"] = board_of(PAIRS[0][1])
    boards["blank"] = np.zeros(81, np.uint8)
    boards["one clue"] = np.eye(81, dtype=np.uint8)[13]
    boards["diagonal"] = np.eye(9, dtype=np.uint8).reshape(81)
    boards["column"] = np.tile(np.array([3, 0, 0, 0, 0, 0, 0, 0, 0], np.uint8), 9)
    boards["one box"] = board_of("120000000340000000" + "0" * 63)
    return boards


BOARDS = _boards()


@pytest.mark.parametrize("name", BOARDS)
def test_symmetries_keep_invariant_and_form(name: str) -> None:
    board = BOARDS[name]
    twins = [applied(augmentation(7, PAIRS[0][0], k), board) for k in range(8)]
    marks, forms = invariants(np.array(twins)), canonical_forms(np.array(twins))
    assert len(set(marks.tolist())) == 1
    assert len(np.unique(forms, axis=0)) == 1


@pytest.mark.parametrize("name", BOARDS)
def test_a_form_is_itself_a_twin(name: str) -> None:
    board = BOARDS[name]
    (form,) = canonical_forms(board[None])
    assert np.count_nonzero(form) == np.count_nonzero(board)
    counts = [sorted(np.unique(each[each > 0], return_counts=True)[1]) for each in (form, board)]
    assert counts[0] == counts[1]
    assert (canonical_forms(form[None]) == form).all()
    assert invariants(form[None]) == invariants(board[None])
    assert text_of(form) <= text_of(board)


def test_no_twin_is_less_than_the_form() -> None:
    dice = random.Random(4)
    lines = [
        [3 * band + line for band, a in zip(bands, inners, strict=True) for line in a]
        for bands in permutations(range(3))
        for inners in [
            (p, q, r)
            for p in permutations(range(3))
            for q in permutations(range(3))
            for r in permutations(range(3))
        ]
    ]
    for _ in range(3):
        board = np.zeros(81, np.uint8)
        for cell in dice.sample(range(81), 3):
            board[cell] = dice.randrange(1, 3)
        least = min(
            _relabelled(grid[np.ix_(rows, columns)].reshape(81))
            for grid in (board.reshape(9, 9), board.reshape(9, 9).T)
            for rows in dice.sample(lines, 25)
            for columns in dice.sample(lines, 25)
        )
        assert text_of(canonical_forms(board[None])[0]) <= least


def _relabelled(board: np.ndarray) -> str:
    labels = {0: 0}
    return "".join(str(labels.setdefault(int(cell), len(labels))) for cell in board)


def test_two_boards_with_one_different_cell_differ() -> None:
    board = BOARDS["puzzle 0"]
    changed = [board]
    for cell in range(81):
        other = board.copy()
        other[cell] = 0 if board[cell] else 1 + cell % 9
        changed.append(other)
    marks = invariants(np.array(changed))
    forms = canonical_forms(np.array(changed))
    assert len(np.unique(forms, axis=0)) == len(np.unique(marks)) > 75
