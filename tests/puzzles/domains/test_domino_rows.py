"""What the 72 positions of a Domino row hold."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.puzzles.domains.domino_rows import (
    ENCODING,
    FIRST,
    NONE,
    ON_RIGHT,
    Scenario,
    decoded,
)
from tests.puzzles.domino_oracle import encoded

CHAIN = Scenario(
    table=((2, 3), (0, 2)), hand=((0, 0), (5, 6)), ends=(3, 0), move=(0, 0), position=ON_RIGHT
)


def test_each_position_of_a_row_holds_what_the_format_says() -> None:
    inputs, labels = encoded(CHAIN)
    assert inputs.tolist() == [3, 4, 1, 3, *[0] * 52, 1, 1, 6, 7, *[0] * 10, 4, 1]
    assert labels.tolist() == [1, 1, 2, *[0] * 69]
    assert inputs.dtype == labels.dtype == np.uint8
    assert (ENCODING.seq_len, ENCODING.vocab_size, ENCODING.pad_id) == (72, 8, 0)
    assert ENCODING.ignore_label_id == 0


@pytest.mark.parametrize(
    "scenario",
    [
        CHAIN,
        Scenario(table=(), hand=((0, 1),), ends=None, move=(0, 1), position=FIRST),
        Scenario(table=((6, 6),), hand=((0, 1),), ends=(6, 6), move=None, position=NONE),
        Scenario(tuple((k % 7, 6) for k in range(28)), ((1, 2),) * 7, (0, 1), (1, 2), 1),
    ],
)
def test_a_scenario_comes_back_from_its_row(scenario: Scenario) -> None:
    assert decoded(*encoded(scenario)) == scenario


def test_a_pair_with_an_empty_half_is_no_tile() -> None:
    inputs, labels = encoded(CHAIN)
    inputs[2], inputs[71], labels[0] = 0, 0, 0
    found = decoded(inputs, labels)
    assert found.table == ((2, 3),)
    assert found.ends is None
    assert found.move is None


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(72,\)"):
        decoded(np.zeros(71, np.uint8), np.zeros(72, np.uint8))
