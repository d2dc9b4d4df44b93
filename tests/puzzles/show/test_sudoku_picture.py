"""Boards of Sudoku."""

import re

import numpy as np
import pytest

from gristmill.puzzles.show.sheet import WRONG
from gristmill.puzzles.show.sudoku_picture import ADDED, GIVEN, digit, sudoku_svg, twice
from tests.drawings import texts
from tests.puzzles.small_datasets import ANSWER, sudoku

_INPUT, _LABEL = sudoku().inputs[0], sudoku().labels[0]


def _group(drawing: str, fill: str) -> list[str]:
    groups = re.findall(rf'<g [^>]*fill="{fill}"[^>]*>(.*?)</g>', drawing)
    return re.findall(r">([^<]+)</text>", "".join(groups))


def test_givens_and_filled_digits_differ() -> None:
    drawing = sudoku_svg(_INPUT, _LABEL, title="one", notes=["a note"])
    # Both boards have the givens; only the solution has the other digits.
    assert len(_group(drawing, GIVEN)) == 60
    added = [cell for cell, given in zip(ANSWER, _INPUT, strict=True) if given == 1]
    assert _group(drawing, ADDED) == added
    assert not _group(drawing, WRONG)
    assert {"one", "a note", "30 givens", "solution, 51 digits filled in"} <= set(texts(drawing))


@pytest.mark.parametrize(
    ("at", "token", "marked"),
    [
        (3, 7, 3),  # a given 1 became 6: red with the 6 of its row, and that of its column
        (2, 1, 0),  # a blank in the solution has no digit to show
        (2, 99, 1),
        (2, 0, 0),
    ],
)
def test_wrong_cells_are_red(at: int, token: int, marked: int) -> None:
    label = _LABEL.copy()
    label[at] = token
    drawing = sudoku_svg(_INPUT, label)
    assert "#fbd9d7" in drawing
    assert len(_group(drawing, WRONG)) == marked


def test_digits_that_are_twice_are_found() -> None:
    board = np.ones((9, 9), np.int64)
    assert not twice(board).any()
    for row, column in ((0, 8), (8, 0), (1, 1)):
        pair = board.copy()
        pair[0, 0] = pair[row, column] = 6
        assert np.argwhere(twice(pair)).tolist() == sorted([[0, 0], [row, column]])
    apart = board.copy()
    apart[0, 0] = apart[4, 5] = 6
    assert not twice(apart).any()


def test_tokens_are_read_as_digits() -> None:
    shown = [digit(token) for token in (0, 1, 2, 10, 11, -1)]
    assert shown == ["", "", "1", "9", "?", "?"]
