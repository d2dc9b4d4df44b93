"""Findings of examples: the compiled check agrees with the named ones, and both with the oracle."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gristmill.puzzles.domains.sudoku.checks import check, described
from tests.puzzles import sudoku


def _examples(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Good examples, and such with one to three changed tokens."""
    dice = random.Random(1)
    pairs = sudoku.pairs(0, 4)
    given, labels = (sudoku.tokens([pairs[k % 4][which] for k in range(count)]) for which in (0, 1))
    for row in range(count):
        for _ in range(dice.choice((0, 1, 1, 3))):
            board = dice.choice((given, labels, labels))
            board[row, dice.randrange(81)] = dice.choice((0, 1, 11, -1, *range(2, 11)))
        if dice.random() < 0.2:  # two exchanged digits keep the counts of a unit
            a, b = dice.sample(range(81), 2)
            labels[row, [a, b]] = labels[row, [b, a]]
    return given, labels


def test_findings_are_those_of_the_oracle() -> None:
    given, labels = _examples(120)
    seen: set[str] = set()
    for row in range(len(given)):
        expected = sudoku.findings(given[row].tolist(), labels[row].tolist())
        assert set(described(given[row], labels[row])) == expected
        seen |= expected
    assert {"input_out_of_vocab", "label_out_of_vocab", "clue_mismatch"} <= seen
    assert len([name for name in seen if "_dup_" in name]) == 27


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_the_compiled_check_finds_the_same_rows(dtype: type) -> None:
    given, labels = (tokens.astype(dtype) for tokens in _examples(400))
    findings, clues = np.empty(400, np.uint8), np.empty(400, np.int32)
    check(given, labels, findings, clues)
    for row in range(400):
        assert bool(findings[row]) == bool([*described(given[row], labels[row])])
        assert clues[row] == sum(2 <= int(token) <= 10 for token in given[row])
    assert 50 < np.count_nonzero(findings) < 350


def test_a_row_of_another_length_is_found() -> None:
    assert [*described(np.ones(80), np.ones(80))] == ["seq_len_mismatch"]
