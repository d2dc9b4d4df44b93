"""Tokens of mazes."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.puzzles.domains.maze_grid import decoded, encoded, encoding, side_of


def test_each_character_has_the_token_of_the_original() -> None:
    tokens = encoded(np.frombuffer(b"# SGo", np.uint8))
    assert tokens.tolist() == [1, 2, 3, 4, 5]
    assert tokens.dtype == np.uint8


def test_every_other_byte_is_no_cell() -> None:
    tokens = encoded(np.arange(256, dtype=np.uint8))
    assert {chr(byte) for byte in np.flatnonzero(tokens)} == set("# SGo")


def test_a_maze_comes_back_as_lines() -> None:
    text = b"# SGo  #o"
    assert decoded(encoded(np.frombuffer(text, np.uint8))) == ["# S", "Go ", " #o"]
    assert decoded(np.array([0, 1, 6, -1])) == ["?#", "??"]
    with pytest.raises(ValueError, match="5 tokens"):
        decoded(np.ones(5, np.uint8))


@pytest.mark.parametrize(
    ("length", "side"), [(900, 30), (1, 1), (0, None), (2, None), (899, None), (-4, None)]
)
def test_a_square_has_a_side(length: int, side: int | None) -> None:
    assert side_of(length) == side


def test_the_encoding_is_that_of_the_original() -> None:
    made = encoding(30)
    assert (made.seq_len, made.vocab_size, made.pad_id, made.ignore_label_id) == (900, 6, 0, 0)
