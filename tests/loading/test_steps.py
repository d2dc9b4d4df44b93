"""Steps by number and by position, before and after a changed batch."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.loading.steps import (
    Change,
    Ends,
    Step,
    count_of,
    share,
    step_after,
    step_at,
    steps_from,
)

CHANGES = [Change(0, 0, 10), Change(3, 30, 7)]


@pytest.mark.parametrize(("ends", "last"), [("short", 3), ("drop", 7), ("pad", 7)])
def test_steps_cover_the_run_in_the_sizes_of_their_time(ends: Ends, last: int) -> None:
    steps = [step_at(CHANGES, number, 47, ends) for number in range(5)]
    assert steps == [
        Step(0, 0, 10),
        Step(1, 10, 10),
        Step(2, 20, 10),
        Step(3, 30, 7),
        Step(4, 37, 7),
    ]
    assert list(steps_from(CHANGES, 30, 47, ends))[:2] == steps[3:]
    rest = list(steps_from(CHANGES, 44, 47, ends))
    assert rest == ([] if ends == "drop" else [Step(5, 44, last)])
    assert count_of(CHANGES, 44, 47, ends) == len(rest)


def test_positions_of_ranks_are_the_step_without_gaps() -> None:
    for world in (1, 2, 3, 7, 12):
        parts = [share(Step(0, 5, 7), rank, world) for rank in range(world)]
        assert np.concatenate(parts).tolist() == list(range(5, 12))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_position_is_the_beginning_of_a_step() -> None:
    assert [step_after(CHANGES, position) for position in (30, 37, 47)] == [3, 4, 6]


@pytest.mark.parametrize("number", [-1, 6])
def test_a_step_outside_is_refused(number: int) -> None:
    with pytest.raises(IndexError, match=f"no step {number}"):
        step_at(CHANGES, number, 47, "short")
