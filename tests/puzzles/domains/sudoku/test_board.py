"""Boards: text, digits and what is no digit."""

from __future__ import annotations

import numpy as np

from gristmill.puzzles.domains.sudoku.board import (
    ENCODING,
    digits,
    first_without_digit,
    text_of,
)


def test_text_becomes_digits_and_text() -> None:
    text = "." * 40 + "0" * 32 + "123456789"
    board = digits(np.frombuffer(text.encode(), np.uint8))
    assert board.tolist() == [0] * 72 + [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert text_of(board) == text.replace(".", "0")
    assert (ENCODING.seq_len, ENCODING.vocab_size, ENCODING.pad_id) == (81, 11, 0)


def test_the_first_character_that_is_no_digit_has_its_place() -> None:
    boards = digits(np.frombuffer((b"." * 81 + b"5" * 60 + b":" + b"1" * 20), np.uint8))
    assert first_without_digit(boards.reshape(2, 81)) == (1, 60)
    assert first_without_digit(boards.reshape(2, 81)[:1]) is None
    assert first_without_digit(boards.reshape(2, 81)[:0]) is None
