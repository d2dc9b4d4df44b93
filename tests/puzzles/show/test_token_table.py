"""Tables of tokens."""

import numpy as np
import pytest

from gristmill.puzzles.show.token_table import COLUMNS, TokenTable, columns_of, tokens
from tests.drawings import texts


def test_tokens_of_uint8_do_not_overflow() -> None:
    assert (tokens(np.array([[0, 255]], np.uint8)) - 1).tolist() == [-1, 254]


@pytest.mark.parametrize(
    ("count", "columns"),
    [(0, COLUMNS), (1, 1), (2, COLUMNS), (81, 9), (1024, 32), (1089, COLUMNS), (72, COLUMNS)],
)
def test_squares_are_shown_as_squares(count: int, columns: int) -> None:
    assert columns_of(count) == columns


def test_the_numbers_of_both_rows_are_shown_and_zero_is_empty() -> None:
    drawing = TokenTable(tokens([3, 0, 140]), tokens([7, 8, 0])).large("t", ["n"])
    assert texts(drawing) == ["t", "input, 3 tokens", "3", "140", "label", "7", "8", "n"]


def test_a_square_has_its_label_beside_the_input() -> None:
    drawing = TokenTable(np.arange(9), np.arange(9)).large()
    assert "label" in texts(drawing)
    assert drawing.count("<g ") == 2


@pytest.mark.parametrize("count", [0, 1, 71, 1024, 1025, 50_000])
def test_any_length_is_drawn_and_the_rest_is_counted(count: int) -> None:
    row = np.arange(count) % 1000
    drawing = TokenTable(row, row).large()
    more = [text for text in texts(drawing) if text.startswith("… and")]
    assert more == ([f"… and {count - 1024:,} more tokens"] if count > 1024 else [])
    assert len(drawing) < 120_000
