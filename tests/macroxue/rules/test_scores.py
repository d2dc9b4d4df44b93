"""board_eval: the values of docs/formats/macroxue.md#board-evaluation, in each implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
from gristmill.macroxue.raw.strict_parser import RuleBroken, parse_step
from gristmill.macroxue.rules.scores import (
    INT32_MIN,
    board_eval,
    board_score,
    line_score,
    line_table,
)
from tests.macroxue.lines import step

LINES = {
    (1, 0, 0, 0): 4,
    (0, 1, 0, 0): -22,
    (0, 0, 0, 1): -24,
    (1, 1, 0, 0): 10,
    (1, 1, 1, 1): 20,
    (3, 2, 1, 0): 68,
    (0, 1, 2, 3): -288,
    (2, 0, 2, 0): -72,
    (15, 15, 0, 0): 2457600,
    (17, 16, 15, 14): 7766016,
    (14, 15, 16, 17): -23756800,
}


def one_at(*cells: int) -> list[int]:
    return [int(i in cells) for i in range(16)]


def checker(a: int, b: int) -> list[int]:
    return [a if (i + i // 4) % 2 == 0 else b for i in range(16)]


BOARDS = [
    ([0] * 16, 0),
    (one_at(0), 8),
    (one_at(3), -20),
    (one_at(15), -48),
    (one_at(5), -44),
    (one_at(0, 1), 18),
    ([6, 5, 3, 1, 2, 2, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0], 2376),
    ([15, 11, 8, 1, 13, 9, 7, 1, 6, 5, 3, 3, 1, 2, 4, 1], 2513308),
    (list(range(15, -1, -1)), 3618726),
    (list(range(16)), -16031270),
    ([2, 2, 1, 1, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7], -33140),
    ([15, 14, 10, 5, 13, 11, 9, 3, 8, 7, 4, 1, 3, 2, 1, 0], 3471764),
    ([14, 13, 12, 1, 11, 10, 9, 1, 8, 7, 6, 1, 1, 1, 1, 1], 1702964),
    ([1] * 16, 160),
    ([11] * 16, 1802240),
    (list(range(16, 0, -1)), 7752964),
    ([17, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], 14333862),
    ([17, 16, 15, 14, 10, 11, 12, 13, 9, 8, 7, 6, 2, 3, 4, 5], 15023208),
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17], -69017126),
    ([16] * 16, 83886080),
    ([17] * 16, 178257920),
    (checker(1, 15), -62914240),
    (checker(0, 17), -285212672),
    ([1, 2, 3] + [0] * 13, -170),
    ([17, 16, 15] + [0] * 12 + [16], -10092544),
]


@pytest.mark.parametrize(("line", "score"), LINES.items())
def test_line_vectors(line: tuple[int, int, int, int], score: int) -> None:
    assert line_score(line) == score
    if max(line) < 16:
        assert line_table()[line[0] << 12 | line[1] << 8 | line[2] << 4 | line[3]] == score


@pytest.mark.parametrize(("board", "score"), BOARDS)
def test_board_vectors_in_every_form(board: list[int], score: int) -> None:
    from gristmill.macroxue.raw.fast_scanner import END, PAD, scan

    assert board_score(board) == score
    assert board_eval(np.array([board])).tolist() == [score]
    line = step(board=board) + b"\n"
    rows = np.zeros(1, STEP_ROW_DTYPE)
    text = np.frombuffer(line + bytes(PAD), np.uint8)
    assert scan(text, 0, len(line), rows, 0, np.zeros(4, np.int64))[2] == END
    assert rows["board_eval"][0] == score


@given(st.lists(st.lists(st.integers(0, 19), min_size=16, max_size=16), min_size=1, max_size=4))
def test_forms_agree_and_ranks_up_to_19_fit(boards: list[list[int]]) -> None:
    expected = [board_score(board) for board in boards]
    assert board_eval(np.array(boards)).tolist() == expected


def test_overflow_and_ranks_out_of_range_are_errors() -> None:
    high = checker(0, 21)
    assert board_score(high) < INT32_MIN
    with pytest.raises(OverflowError, match="board 1"):
        board_eval(np.array([[0] * 16, high]))
    with pytest.raises(RuleBroken, match="overflows int32"):
        parse_step(step(board=high))
    with pytest.raises(ValueError, match=r"0\.\.31"):
        board_eval(np.array([[32] * 16]))
