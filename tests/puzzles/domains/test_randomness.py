"""Seeded draws: the algorithm of the docs, equal chances, and independence of the streams."""

import hashlib

import numpy as np

from gristmill.puzzles.domains import randomness
from gristmill.puzzles.domains.randomness import source_key
from gristmill.run.kernels import kernel
from tests.puzzles.plain_draws import Stream


@kernel()
def _drawn(key, number, bounds, order):  # type: ignore[no-untyped-def]
    state = np.empty(1, np.uint64)
    randomness.start(state, key, number)
    found = np.empty_like(bounds)
    for place in range(bounds.shape[0]):
        found[place] = randomness.below(state, bounds[place])
    randomness.shuffle(state, order)
    return found


def test_draws_are_those_of_the_docs() -> None:
    for number in (0, 1, 2, 1_000_000):
        key = source_key(number, "sudoku", "4.")
        bounds = np.array([1, 2, 9, 2**62 + 1, 2**31, 7])
        order = np.arange(9)
        found = _drawn(np.uint64(key), number, bounds, order)
        stream = Stream(key, number)
        assert found.tolist() == [stream.below(bound) for bound in bounds.tolist()]
        expected = list(range(9))
        stream.shuffle(expected)
        assert order.tolist() == expected


def test_a_key_is_the_start_of_a_hash() -> None:
    digest = hashlib.sha256(b"42:arc:007bbfb7").digest()
    assert source_key(42, "arc", "007bbfb7") == int.from_bytes(digest[:8], "little")


def test_each_order_of_a_shuffle_is_as_likely() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for number in range(6000):
        order = np.arange(3)
        _drawn(np.uint64(5), number, np.array([2]), order)
        counts[tuple(order.tolist())] = counts.get(tuple(order.tolist()), 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1000) < 150 for count in counts.values())
