"""From words to whole numbers of samples, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.contract import GristmillError
from gristmill.loading import Mixture, Plan, mixture
from tests.loading.numbered import Numbered

SOURCES: Any = {"a": Numbered("a", [0, 10]), "b": Numbered("b", [0, 25])}


def test_epochs_are_rounded_to_samples_and_facts_say_what_each_source_gives():
    assert mixture(SOURCES, epochs={"a": 1.5, "b": 0.5}).quotas == (15, 12)
    facts = Plan(mixture(SOURCES, epochs={"a": 2, "b": 0.8})).facts()
    assert facts[0] == {"source": "a", "samples": 20, "tokens": 110, "epochs": 2.0, "share": 0.5}


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


def test_the_same_data_by_two_paths_and_a_source_without_samples_are_refused():
    with pytest.raises(GristmillError, match="is the same data as a: name it once"):
        Mixture((SOURCES["a"], Numbered("a", [0, 10])), (1, 1))
    with pytest.raises(GristmillError, match="empty: a quota of 1 of 0 samples"):
        Mixture((Numbered("empty", [0, 0]),), (1,))


def test_samples_without_length_are_mixed_by_other_measures():
    class Plain(Numbered):
        lengths: Any = None

    sources: Any = {"p": Plain("p", [0, 4])}
    assert Plan(mixture(sources, epochs={"p": 1})).facts()[0]["tokens"] is None
    with pytest.raises(GristmillError, match="its samples have no tokens"):
        mixture(sources, tokens={"p": 4})
