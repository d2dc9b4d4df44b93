"""Positions as sources and draws: exact quotas, shares in any stretch, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.loading.schedule import Schedule, shares

QUOTAS = [5_000, 2_500, 2_499, 1, 0]
GOLDEN = (
    [1, 1, 0, 1, 1, 0, 0, 1, 1, 2, 0, 2],
    [0, 1, 0, 2, 3, 1, 2, 4, 5, 0, 3, 1],
    [0, 1, 2, 2, 0, 0],
    [0, 1023, 1024, 2047, 4096, 4999],
)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), st.data())
def test_shares_never_fall_and_are_exact_at_the_end(quotas: list[int], data: st.DataObject) -> None:
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
def test_each_source_gives_its_quota_with_ascending_draws(quotas: list[int]) -> None:
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


def test_the_positions_of_version_1_never_change() -> None:
    sources, draws = Schedule([4, 6, 2], 11).at(np.arange(12))
    assert sources.tolist() == GOLDEN[0]
    assert draws.tolist() == GOLDEN[1]
    sources, draws = Schedule(QUOTAS, 11).at(np.array([0, 4095, 4096, 8191, 8192, 9999]))
    assert sources.tolist() == GOLDEN[2]
    assert draws.tolist() == GOLDEN[3]


@pytest.mark.parametrize("world", [2, 4])
def test_every_rank_has_the_shares(world: int) -> None:
    sources, _ = Schedule([50_000, 25_000, 25_000], 3).at(np.arange(96_000))
    by_rank = sources.reshape(-1, world)  # micro-batches of one sample
    for rank in range(world):
        assert abs(float((by_rank[:, rank] == 0).mean()) - 0.5) < 0.01


def test_any_stretch_has_the_shares_to_some_samples() -> None:
    sources, _ = Schedule([50_000, 50_000], 3).at(np.arange(90_000))
    halves = (sources.reshape(-1, 100) == 0).sum(axis=1)
    assert 44 <= halves.min() <= halves.max() <= 56
