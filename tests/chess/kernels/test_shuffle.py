"""The kernel's shuffles against those of `random.Random`."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.chess.read.samples import Seed, capped, legacy_seed, runtime_seed


def with_random(
    samples: list[int], ids: list[str], cap: int, seed: int, seed_of: Seed
) -> list[int]:
    """The indices that stay, as the formats state it."""
    kept = []
    for n, game_id in zip(samples, ids, strict=True):
        indices = list(range(7, 7 + n))
        if n > cap:
            random.Random(seed_of(seed, game_id)).shuffle(indices)
        kept += indices[:cap]
    return kept


@pytest.mark.parametrize("seed_of", [legacy_seed, runtime_seed])
@settings(max_examples=30)
@given(
    games=st.lists(st.tuples(st.integers(0, 700), st.text(max_size=50)), min_size=1, max_size=6),
    cap=st.integers(1, 40),
    seed=st.integers(0, 1 << 40),
)
def test_a_game_is_shuffled_as_python_does_it(
    seed_of: Seed, games: list[tuple[int, str]], cap: int, seed: int
) -> None:
    samples, ids = [n for n, _ in games], [game_id for _, game_id in games]
    kept, indices = capped(np.array(samples), 8, cap, ids, seed, seed_of)
    assert kept.tolist() == [min(n, cap) for n in samples]
    assert indices.tolist() == with_random(samples, ids, cap, seed, seed_of)


# A key of more words than the generator's state, one of no word, and the largest of one word.
@pytest.mark.parametrize("number", [0, 1, (1 << 32) - 1, 1 << 32, 3 << (32 * 700)], ids=range(5))
def test_seeds_of_any_size(number: int) -> None:
    _, indices = capped(np.array([3000]), 8, 2999, ["a"], 0, lambda *_: number)
    assert indices.tolist() == with_random([3000], ["a"], 2999, 0, lambda *_: number)


def test_the_seed_of_a_text_is_that_of_python() -> None:
    for game_id, text in (("g1", "7:g1"), ("", "7:unknown")):
        ours, theirs = random.Random(runtime_seed(7, game_id)), random.Random(text)
        assert ours.getstate() == theirs.getstate()
