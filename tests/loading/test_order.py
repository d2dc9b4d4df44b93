"""Draws as sample numbers: each epoch a permutation, by numbers that never change."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.loading.order import Order
from tests.loading.numbered import Numbered, sample_at

CUTS = [0, 7, 10, 11, 30]


@pytest.mark.parametrize("window", [0, 1, 2, 9])
def test_draws_are_as_scalars_have_them_and_places_lead_back(window: int) -> None:
    source = Numbered("a", CUTS)
    order = Order(source.cuts, 7, source.identity.text, window)
    numbers = order.numbers(np.arange(90))
    assert numbers.tolist() == [sample_at(source, 7, window, draw) for draw in range(90)]
    epochs = numbers.reshape(3, 30)
    assert all(sorted(epoch) == list(range(30)) for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 3
    for draw in (0, 29, 30, 77):
        assert order.place(draw // 30, int(numbers[draw])) == draw % 30


def test_the_numbers_of_version_1_never_change() -> None:
    source = Numbered("a", [0, 7, 10])
    orders = [Order(source.cuts, 7, source.identity.text, window) for window in (0, 1)]
    whole, windowed = (order.numbers(np.arange(12)).tolist() for order in orders)
    assert whole == [3, 8, 2, 7, 1, 4, 6, 0, 9, 5, 5, 7]
    assert windowed[:10] == [8, 7, 9, 6, 3, 5, 1, 0, 2, 4]


def test_a_window_reads_few_shards_at_a_time() -> None:
    cuts = np.arange(0, 1001, 10)
    shards = Order(cuts, 1, "a", 3).numbers(np.arange(1000)) // 10
    assert all(len(set(part.tolist())) == 3 for part in np.split(shards[:990], 33))


def test_empty_shards_are_passed_over() -> None:
    numbers = Order(np.array([0, 0, 4, 4, 4, 6, 6]), 1, "a", 2).numbers(np.arange(6))
    assert sorted(numbers.tolist()) == list(range(6))


def test_without_a_seed_samples_come_by_number() -> None:
    order = Order(np.array(CUTS), None, "a", 2)
    assert order.numbers(np.arange(28, 33)).tolist() == [28, 29, 0, 1, 2]
    assert order.place(1, 5) == 5
