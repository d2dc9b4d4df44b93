"""A run as a function of the position, and its inverse."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.contract import GristmillError
from gristmill.loading import Grouped, Mixture, Picked, Plan, mixture
from gristmill.loading.plan import (
    Change,
    Schedule,
    Step,
    count_of,
    share,
    shares,
    step_after,
    step_at,
    steps_from,
)
from tests.loading.numbered import Numbered

A, B = Numbered("a", [0, 7, 10]), Numbered("b", [0, 50])
GOLDEN = ([0, 1, 1, 0, 1, 1], [8, 48, 43, 9, 27, 17], [950624653750157460, 15608248635339269360])


def changed() -> Plan:
    """Two mixtures, of which the second adds a source and leaves one out."""
    plan = Plan(Mixture((A, B), (20, 60)), seed=7)
    return plan.changed(33, Mixture((B, Numbered("c", [0, 9])), (70, 20)))


@pytest.mark.parametrize(
    "view", [Picked(B, np.array([4, 30, 9, 10])), Grouped(B, np.array([0, 1, 20, 50]))]
)
def test_seen_finds_the_samples_of_a_view(view):
    plan = Plan(Mixture((A, view), (5, 40)), seed=2)
    sources, numbers = plan.at(np.arange(45))
    for number in set(numbers[sources == 1].tolist()):
        found = np.flatnonzero((sources == 1) & (numbers == number)).tolist()
        assert plan.seen(1, number, 45) == found


def test_a_source_goes_on_in_another_mixture_and_others_are_mixed_by_measures():
    plan, first = changed(), Plan(Mixture((A, B), (20, 60)), seed=7)
    sources, numbers = plan.at(np.arange(plan.length))
    given = numbers[sources == 1].tolist()
    alone = Plan(B, seed=7).at(np.arange(len(given)))[1].tolist()
    assert given == alone
    assert plan.drawn(33) == [*first.drawn(33), 0]
    assert plan.drawn(plan.length) == [first.drawn(33)[0], first.drawn(33)[1] + 70, 20]
    with pytest.raises(GristmillError, match="position 32: the mixture was changed at 33"):
        plan.changed(32, Mixture((A,), (1,)))

    class Plain(Numbered):
        lengths: Any = None

    sources: Any = {"p": Plain("p", [0, 4])}
    assert Plan(mixture(sources, epochs={"p": 1})).facts()[0]["tokens"] is None
    with pytest.raises(GristmillError, match="its samples have no tokens"):
        mixture(sources, tokens={"p": 4})


def test_a_pickled_plan_gives_the_same_and_seen_finds_all_positions():
    plan = changed()
    again = pickle.loads(pickle.dumps(plan))
    for one, other in zip(
        plan.drawn_at(np.arange(123)), again.drawn_at(np.arange(123)), strict=True
    ):
        assert np.array_equal(one, other)
    sources, numbers = plan.at(np.arange(plan.length))
    assert plan.length == 33 + 90
    for source, length in ((0, 10), (1, 50), (2, 9)):
        for number in range(length):
            found = np.flatnonzero((sources == source) & (numbers == number)).tolist()
            assert plan.seen(source, number, plan.length) == found
            assert plan.seen(source, number, 60) == [each for each in found if each < 60]
    with pytest.raises(IndexError, match="no sample 10: there are 10"):
        plan.seen(0, 10, 5)


def test_a_window_below_0_and_the_same_data_by_two_paths_are_refused():
    with pytest.raises(ValueError, match="window -1"):
        Plan(A, window=-1)
    with pytest.raises(TypeError, match=r"list is no source: give its `source\(\)`"):
        Plan([1, 2])
    with pytest.raises(GristmillError, match="is the same data as a: name it once"):
        Mixture((SOURCES["a"], Numbered("a", [0, 10])), (1, 1))
    with pytest.raises(GristmillError, match="empty: a quota of 1 of 0 samples"):
        Mixture((Numbered("empty", [0, 0]),), (1,))


QUOTAS = [5_000, 2_500, 2_499, 1, 0]
GOLDEN_of_schedule = (
    [1, 1, 0, 1, 1, 0, 0, 1, 1, 2, 0, 2],
    [0, 1, 0, 2, 3, 1, 2, 4, 5, 0, 3, 1],
    [0, 1, 2, 2, 0, 0],
    [0, 1023, 1024, 2047, 4096, 4999],
)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), st.data())
def test_shares_never_fall_and_are_exact_at_the_end(quotas, data):
    total = sum(quotas)
    places = sorted(data.draw(st.lists(st.integers(0, total), max_size=5)))
    before = [0] * len(quotas)
    for place in places:
        now = shares(quotas, place)
        assert sum(now) == place
        assert all(a <= b <= quota for a, b, quota in zip(before, now, quotas, strict=True))
        before = now
    assert shares(quotas, total) == quotas


@pytest.mark.parametrize("quotas", [QUOTAS, [3], [1, 1], [4095, 4097]])
def test_each_source_gives_its_quota_with_ascending_draws(quotas):
    schedule, total = Schedule(quotas, 5), sum(quotas)
    sources, draws = schedule.at(np.arange(2 * total))
    for source, quota in enumerate(quotas):
        assert np.array_equal(draws[sources == source], np.arange(2 * quota))
    for position in (0, 1, total // 2, total - 1, total, 2 * total - 1):
        assert schedule.drawn(position) == [
            int((sources[:position] == source).sum()) for source in range(len(quotas))
        ]
        source, draw = int(sources[position]), int(draws[position])
        assert schedule.position(source, draw) == position


def test_positions_never_change_and_those_of_ranks_have_no_gaps():
    sources, draws = Schedule([4, 6, 2], 11).at(np.arange(12))
    assert sources.tolist() == GOLDEN_of_schedule[0]
    assert draws.tolist() == GOLDEN_of_schedule[1]
    sources, draws = Schedule(QUOTAS, 11).at(np.array([0, 4095, 4096, 8191, 8192, 9999]))
    assert sources.tolist() == GOLDEN_of_schedule[2]
    assert draws.tolist() == GOLDEN_of_schedule[3]
    assert [step_after(CHANGES, position) for position in (30, 37, 47)] == [3, 4, 6]
    sources, numbers, bits = Plan(Mixture((A, B), (4, 6)), seed=1).drawn_at(np.arange(6))
    assert (sources.tolist(), numbers.tolist()) == GOLDEN[:2]
    assert bits.tolist()[:2] == GOLDEN[2]
    sources, _ = Schedule([50_000, 50_000], 3).at(np.arange(90_000))
    halves = (sources.reshape(-1, 100) == 0).sum(axis=1)
    assert 44 <= halves.min() <= halves.max() <= 56
    for world in (1, 2, 3, 7, 12):
        parts = [share(Step(0, 5, 7), rank, world) for rank in range(world)]
        assert np.concatenate(parts).tolist() == list(range(5, 12))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert mixture(SOURCES, epochs={"a": 1.5, "b": 0.5}).quotas == (15, 12)
    facts = Plan(mixture(SOURCES, epochs={"a": 2, "b": 0.8})).facts()
    assert facts[0] == {"source": "a", "samples": 20, "tokens": 110, "epochs": 2.0, "share": 0.5}


@pytest.mark.parametrize("world", [2, 4])
def test_every_rank_has_the_shares(world):
    sources, _ = Schedule([50_000, 25_000, 25_000], 3).at(np.arange(96_000))
    by_rank = sources.reshape(-1, world)  # micro-batches of one sample
    for rank in range(world):
        assert abs(float((by_rank[:, rank] == 0).mean()) - 0.5) < 0.01


CHANGES = [Change(0, 0, 10), Change(3, 30, 7)]


@pytest.mark.parametrize(("ends", "last"), [("short", 3), ("drop", 7), ("pad", 7)])
def test_steps_cover_the_run_in_the_sizes_of_their_time(ends, last):
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


@pytest.mark.parametrize("number", [-1, 6])
def test_a_step_outside_is_refused(number):
    with pytest.raises(IndexError, match=f"no step {number}"):
        step_at(CHANGES, number, 47, "short")


SOURCES: Any = {"a": Numbered("a", [0, 10]), "b": Numbered("b", [0, 25])}


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 1, 2])
@given(st.lists(st.integers(0, 600), min_size=2, max_size=2), st.integers(0, 60), st.integers(0))
@settings(max_examples=25)
def test_a_budget_of_tokens_is_given_to_one_sample(window, budgets, before, seed):
    """Samples have 1, 2, 3, ... tokens, so that the first ones have far fewer than others."""
    sources: Any = {"a": Numbered("a", [0, 4, 10]), "b": Numbered("b", [0, 9, 16, 25])}
    if not sum(budgets):
        return
    mixed = mixture(sources, tokens=dict(zip(sources, budgets, strict=True)), max_epochs=99)
    plan = Plan(Mixture(tuple(sources.values()), (40, 20)), seed=seed % 2**64, window=window)
    assert plan.facts()[0]["share"] == pytest.approx(2 / 3)
    for made in (plan.changed(before, mixed), Plan(mixed, seed=seed % 2**64, window=window)):
        source_of, numbers = made.at(np.arange(made.segments[-1][0], made.length))
        for at, (facts, budget) in enumerate(zip(made.facts(), budgets, strict=True)):
            given = numbers[source_of == at] + 1
            assert int(given.sum()) >= budget > int(given[:-1].sum()) or budget == len(given) == 0
            assert (facts["tokens"], facts["samples"]) == (int(given.sum()), len(given))
            assert facts["share"] == pytest.approx(given.sum() / (numbers + 1).sum())


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=2), st.integers(1, 10**6))
def test_weights_share_the_samples_to_one(weights, samples):
    if not sum(weights):
        return
    named = dict(zip(SOURCES, weights, strict=True))
    mixed = mixture(SOURCES, weights=named, samples=samples, max_epochs=1e9)
    assert sum(mixed.quotas) == samples
    for weight, quota in zip(weights, mixed.quotas, strict=True):
        assert abs(quota - weight / sum(weights) * samples) < 1.001


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "by one of epochs=, tokens=, or weights="),
        ({"epochs": {"a": 1, "b": 1}, "samples": 3}, "by one of"),
        ({"weights": {"a": 1, "b": 1}}, "weights= with samples="),
        ({"epochs": {"a": 1}}, "'b' is not in both"),
        ({"epochs": {"a": 1, "b": -1}}, "b has -1"),
        ({"epochs": {"a": 1, "b": float("nan")}}, "b has nan"),
        ({"epochs": {"a": 1, "b": 5}}, "125 of 25 samples are 5.00 epochs, more than 4"),
        ({"weights": {"a": 0, "b": 0}, "samples": 3}, "all are 0"),
        ({"epochs": {"a": 0, "b": 0}}, "a mixture without samples"),
    ],
)
def test_what_makes_no_mixture_is_refused(given, words):
    with pytest.raises(GristmillError, match=words):
        mixture(SOURCES, **given)
