"""A run as a function of the position, and its inverse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.loading import Grouped, Mixture, Picked, Plan
from tests.loading.numbered import Numbered

A, B = Numbered("a", [0, 7, 10]), Numbered("b", [0, 50])
GOLDEN = ([0, 1, 1, 0, 1, 1], [8, 48, 43, 9, 27, 17], [950624653750157460, 15608248635339269360])


def changed() -> Plan:
    """Two mixtures, of which the second adds a source and leaves one out."""
    plan = Plan(Mixture((A, B), (20, 60)), seed=7)
    return plan.changed(33, Mixture((B, Numbered("c", [0, 9])), (70, 20)))


def test_seen_finds_all_positions_of_a_sample() -> None:
    plan = changed()
    sources, numbers = plan.at(np.arange(plan.length))
    assert plan.length == 33 + 90
    for source, length in ((0, 10), (1, 50), (2, 9)):
        for number in range(length):
            found = np.flatnonzero((sources == source) & (numbers == number)).tolist()
            assert plan.seen(source, number, plan.length) == found
            assert plan.seen(source, number, 60) == [each for each in found if each < 60]
    with pytest.raises(IndexError, match="no sample 10: there are 10"):
        plan.seen(0, 10, 5)


@pytest.mark.parametrize(
    "view", [Picked(B, np.array([4, 30, 9, 10])), Grouped(B, np.array([0, 1, 20, 50]))]
)
def test_seen_finds_the_samples_of_a_view(view: Picked | Grouped) -> None:
    plan = Plan(Mixture((A, view), (5, 40)), seed=2)
    sources, numbers = plan.at(np.arange(45))
    for number in set(numbers[sources == 1].tolist()):
        found = np.flatnonzero((sources == 1) & (numbers == number)).tolist()
        assert plan.seen(1, number, 45) == found


def test_a_source_goes_on_at_its_next_draw_in_another_mixture() -> None:
    plan, first = changed(), Plan(Mixture((A, B), (20, 60)), seed=7)
    sources, numbers = plan.at(np.arange(plan.length))
    given = numbers[sources == 1].tolist()
    alone = Plan(B, seed=7).at(np.arange(len(given)))[1].tolist()
    assert given == alone
    assert plan.drawn(33) == [*first.drawn(33), 0]
    assert plan.drawn(plan.length) == [first.drawn(33)[0], first.drawn(33)[1] + 70, 20]
    with pytest.raises(GristmillError, match="position 32: the mixture was changed at 33"):
        plan.changed(32, Mixture((A,), (1,)))


def test_a_plan_that_was_pickled_gives_the_same() -> None:
    plan = changed()
    again = pickle.loads(pickle.dumps(plan))
    for one, other in zip(
        plan.drawn_at(np.arange(123)), again.drawn_at(np.arange(123)), strict=True
    ):
        assert np.array_equal(one, other)


def test_the_samples_of_version_1_never_change() -> None:
    sources, numbers, bits = Plan(Mixture((A, B), (4, 6)), seed=1).drawn_at(np.arange(6))
    assert (sources.tolist(), numbers.tolist()) == GOLDEN[:2]
    assert bits.tolist()[:2] == GOLDEN[2]


def test_a_window_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="window -1"):
        Plan(A, window=-1)
