"""From words to whole numbers of samples, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import GristmillError
from gristmill.loading import Mixture, mixture
from tests.loading.numbered import Numbered

SOURCES: Any = {"a": Numbered("a", [0, 10]), "b": Numbered("b", [0, 25])}


def test_epochs_are_rounded_to_samples() -> None:
    assert mixture(SOURCES, epochs={"a": 1.5, "b": 0.5}).quotas == (15, 12)


def test_the_first_samples_have_the_tokens() -> None:
    # Samples have 1, 2, 3, ... tokens: 55 in an epoch of a, 325 in one of b.
    mixed = mixture(SOURCES, tokens={"a": 55 + 4, "b": 3})
    assert mixed.quotas == (10 + 3, 2)
    assert [facts["tokens"] for facts in mixed.facts()] == [55 + 6, 3]
    assert mixture(SOURCES, tokens={"a": 110, "b": 0}).quotas == (20, 0)


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=2), st.integers(1, 10**6))
def test_weights_share_the_samples_to_one(weights: list[float], samples: int) -> None:
    if not sum(weights):
        return
    named = dict(zip(SOURCES, weights, strict=True))
    mixed = mixture(SOURCES, weights=named, samples=samples, max_epochs=1e9)
    assert sum(mixed.quotas) == samples
    for weight, quota in zip(weights, mixed.quotas, strict=True):
        assert abs(quota - weight / sum(weights) * samples) < 1.001


def test_facts_say_what_each_source_gives() -> None:
    facts = mixture(SOURCES, epochs={"a": 2, "b": 0.8}).facts()
    assert facts[0] == {"source": "a", "samples": 20, "tokens": 110, "epochs": 2.0, "share": 0.5}


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
def test_what_makes_no_mixture_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(GristmillError, match=words):
        mixture(SOURCES, **given)


def test_the_same_data_by_two_paths_is_refused() -> None:
    copy = Numbered("a", [0, 10])
    with pytest.raises(GristmillError, match="is the same data as a: name it once"):
        Mixture((SOURCES["a"], copy), (1, 1))


def test_a_source_without_samples_is_refused() -> None:
    with pytest.raises(GristmillError, match="empty: a quota of 1 of 0 samples"):
        Mixture((Numbered("empty", [0, 0]),), (1,))


def test_samples_without_length_are_mixed_by_other_measures() -> None:
    class Plain(Numbered):
        lengths: Any = None

    sources: Any = {"p": Plain("p", [0, 4])}
    assert mixture(sources, epochs={"p": 1}).facts()[0]["tokens"] is None
    with pytest.raises(GristmillError, match="its samples have no tokens"):
        mixture(sources, tokens={"p": 4})
