"""Symmetries: a group, drawn as the page says, and applied alike one by one and by the kernel."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gristmill.puzzles.domains.sudoku.board import board_of, text_of
from gristmill.puzzles.domains.sudoku.solver import solutions_of
from gristmill.puzzles.domains.sudoku.symmetry import Symmetry, augmentation
from tests.puzzles import sudoku

PAIRS = sudoku.pairs(0, 3)


def symmetries(count: int) -> list[Symmetry]:
    return [augmentation(k % 3, PAIRS[k % 3][0], k + 1) for k in range(count)]


def test_a_draw_is_the_one_of_the_page() -> None:
    for seed, (question, answer) in zip((0, 42, 2**63 - 1), PAIRS, strict=True):
        for number in (1, 2, 3, 1000):
            symmetry = augmentation(seed, question, number)
            found = [text_of(symmetry.apply(board_of(board))) for board in (question, answer)]
            assert found == sudoku.augmented(seed, question, (question, answer), number)


def test_draws_turn_and_do_not_turn() -> None:
    assert {symmetry.transposes for symmetry in symmetries(12)} == {False, True}


def test_draw_zero_is_the_source() -> None:
    board = board_of(PAIRS[0][0])
    assert (augmentation(42, PAIRS[0][0], 0).apply(board) == board).all()


def test_symmetries_are_a_group() -> None:
    dice = random.Random(3)
    # A board without any symmetry of its own, and with all of its cells different from others.
    board = np.array([dice.randrange(10) for _ in range(81)], np.uint8)
    identity = augmentation(0, PAIRS[0][0], 0)
    drawn = symmetries(24)
    for one in drawn:
        assert (one.inverse().apply(one.apply(board)) == board).all()
        assert one.after(one.inverse()) == one.inverse().after(one) == identity
        other, third = dice.choice(drawn), dice.choice(drawn)
        both = one.after(other)
        assert (both.apply(board) == one.apply(other.apply(board))).all()
        assert one.after(other.after(third)) == both.after(third)
        assert both.inverse() == other.inverse().after(one.inverse())


def test_a_symmetry_keeps_rules_clues_and_the_number_of_solutions() -> None:
    for symmetry in symmetries(12):
        for question, answer in PAIRS:
            asked, solved = symmetry.apply(board_of(question)), symmetry.apply(board_of(answer))
            given, label = (asked + 1).tolist(), (solved + 1).tolist()
            assert sudoku.findings(given, label) == set()
            assert np.count_nonzero(asked) == 81 - question.count("0")
            found, counts, _ = solutions_of(asked[None])
            assert counts.tolist() == [1] and (found[0] == solved).all()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": (0, 1, 3, 2, 4, 5, 6, 7, 8)},
        {"columns": (0, 1, 1, 3, 4, 5, 6, 7, 8)},
        {"digits": (1, 0, *range(2, 10))},
        {"digits": (0, 1, 1, *range(3, 10))},
    ],
)
def test_what_is_no_symmetry_is_refused(change: dict[str, tuple[int, ...]]) -> None:
    lines = tuple(range(9))
    values = {"rows": lines, "columns": lines, "digits": tuple(range(10)), **change}
    with pytest.raises(ValueError, match=r"keep bands together|relabelling"):
        Symmetry(False, values["rows"], values["columns"], values["digits"])
