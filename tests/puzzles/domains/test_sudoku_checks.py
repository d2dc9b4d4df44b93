"""Findings of examples: the compiled check agrees with the named ones, and both with the oracle."""

import random

import numpy as np
import pytest

from gristmill.puzzles.domains import sudoku_checks as solver
from gristmill.puzzles.domains.grid import SUDOKU_ENCODING, digits, first_without_digit, text_of
from gristmill.puzzles.domains.sudoku_checks import check, described, solutions_of
from tests.puzzles import sudoku
from tests.puzzles.sudoku import board_of


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


def test_findings_are_those_of_the_oracle_and_another_length_is_one() -> None:
    given, labels = _examples(120)
    seen: set[str] = set()
    for row in range(len(given)):
        expected = sudoku.findings(given[row].tolist(), labels[row].tolist())
        assert set(described(given[row], labels[row])) == expected
        seen |= expected
    assert {"input_out_of_vocab", "label_out_of_vocab", "clue_mismatch"} <= seen
    assert len([name for name in seen if "_dup_" in name]) == 27
    assert [*described(np.ones(80), np.ones(80))] == ["seq_len_mismatch"]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_the_compiled_check_finds_the_same_rows(dtype: type) -> None:
    given, labels = (tokens.astype(dtype) for tokens in _examples(400))
    findings, clues = np.empty(400, np.uint8), np.empty(400, np.int32)
    check(given, labels, findings, clues)
    for row in range(400):
        assert bool(findings[row]) == bool([*described(given[row], labels[row])])
        assert clues[row] == sum(2 <= int(token) <= 10 for token in given[row])
    assert 50 < np.count_nonzero(findings) < 350


def test_text_becomes_digits_and_solutions_are_counted_up_to_a_bound() -> None:
    text = "." * 40 + "0" * 32 + "123456789"
    board = digits(np.frombuffer(text.encode(), np.uint8))
    assert board.tolist() == [0] * 72 + [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert text_of(board) == text.replace(".", "0")
    shared = SUDOKU_ENCODING
    assert (shared.seq_len, shared.vocab_size, shared.pad_id) == (81, 11, 0)
    boards = digits(np.frombuffer((b"." * 81 + b"5" * 60 + b":" + b"1" * 20), np.uint8))
    assert first_without_digit(boards.reshape(2, 81)) == (1, 60)
    assert first_without_digit(boards.reshape(2, 81)[:1]) is None
    assert first_without_digit(boards.reshape(2, 81)[:0]) is None
    blank = np.zeros((1, 81), np.uint8)
    assert solutions_of(blank)[1].tolist() == [2]
    assert solutions_of(blank, 1)[1].tolist() == [1]
    assert solutions_of(blank, 50)[1].tolist() == [50]
    boards = ["11" + "0" * 79, "1" + "0" * 8 + "1" + "0" * 71, "1" + "0" * 9 + "1" + "0" * 70]
    boards.append("123456780" + "0" * 17 + "9" + "0" * 54)
    assert solutions_of(np.array([board_of(board) for board in boards]))[1].tolist() == [0] * 4


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


@pytest.mark.slow
def test_a_board_that_takes_too_long_is_given_up() -> None:
    hostile = ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4........."
    _, counts, guesses = solutions_of(board_of(hostile)[None])
    assert counts.tolist() == [solver.GAVE_UP]
    assert guesses[0] == solver.MOST_GUESSES + 1
