"""A source whose samples say their own number, and the order written a second time, by scalars."""

from collections.abc import Iterator, Sequence
from itertools import cycle, pairwise
from math import isqrt
from typing import Any

import numpy as np

from gristmill.contract import Trace
from gristmill.loading import Identity
from gristmill.loading.bijection import Numbers, key

_ALL = (1 << 64) - 1


class Numbered:
    """Samples [N] whose one column is their number; any length, no memory."""

    def __init__(self, name: str, cuts: list[int], version: str = "1") -> None:
        self.identity = Identity("test/numbered", (version,), None, {"name": name}, name)
        self.cuts: Numbers = np.array(cuts, np.int64)

    def read(self, numbers: Numbers) -> dict[str, Any]:
        """The numbers."""
        return {"value": numbers.copy()}

    def origin(self, number: int) -> Iterator[Trace]:
        """Nothing."""
        return iter(())

    def lengths(self) -> Numbers:
        """Tokens of each sample: its number and one more."""
        return np.arange(1, int(self.cuts[-1]) + 1)


def _mixed(word: int) -> int:
    word &= _ALL
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _ALL
    return word ^ (word >> 31)


def permuted(length: int, seed: int, place: int) -> int:
    """The number at a place of the permutation of version 1."""
    rows = isqrt(length - 1) + 1 if length > 1 else 1
    columns = -(-length // rows)
    keys = [_mixed(seed + 0x9E3779B97F4A7C15 * n) for n in range(1, (9 if length > 1024 else 33))]
    while True:
        left, right = divmod(place, columns)
        for number, each in enumerate(keys):
            if number % 2:
                right = (right + ((_mixed(left + each) >> 32) * columns >> 32)) % columns
            else:
                left = (left + ((_mixed(right + each) >> 32) * rows >> 32)) % rows
        place = left * columns + right
        if place < length:
            return place


def _shares(quotas: Sequence[int], positions: int) -> list[int]:
    if len(quotas) == 1:
        return [positions]
    left, right = quotas[: len(quotas) // 2], quotas[len(quotas) // 2 :]
    of_right = positions * sum(right) // (sum(quotas) or 1)
    return _shares(left, positions - of_right) + _shares(right, of_right)


def turns(quotas: Sequence[int], seed: int | None, first: int) -> Iterator[int]:
    """The sources of the positions of a mixture, for ever, as `Mixtures` gives them."""
    total = sum(quotas)
    for number in cycle(range(-(-total // 4096))):
        begin = _shares(quotas, 4096 * number)
        end = _shares(quotas, min(4096 * (number + 1), total))
        draws = [
            (s, j, b - a)
            for s, (a, b) in enumerate(zip(begin, end, strict=True))
            for j in range(b - a)
        ]
        word = key("mix", key("segment", seed, first), number)
        bits = [_mixed(word + _mixed(i)) >> 23 for i in range(len(draws))]
        places = [
            ((j << 40) + r) % (c << 40) * 2048 // c
            for (_, j, c), r in zip(draws, bits, strict=True)
        ]
        yield from (draws[i][0] for i in sorted(range(len(draws)), key=places.__getitem__))


def sample_at(source: Numbered, seed: int | None, window: int, draw: int) -> int:
    """The sample of a draw, as `Order` gives it."""
    length, text = int(source.cuts[-1]), source.identity.text
    epoch, place = divmod(draw, length)
    if seed is None:
        return place
    if not window:
        return permuted(length, key("samples", seed, text, epoch), place)
    shards = [range(a, b) for a, b in pairwise(source.cuts.tolist())]
    seed_of_shards = key("shards", seed, text, epoch)
    shuffled = [shards[permuted(len(shards), seed_of_shards, at)] for at in range(len(shards))]
    first = 0
    for number, begin in enumerate(range(0, len(shards), window)):
        numbers = [each for shard in shuffled[begin : begin + window] for each in shard]
        if place < first + len(numbers):
            seed_of_window = key("window", seed, text, epoch, number)
            return numbers[permuted(len(numbers), seed_of_window, place - first)]
        first += len(numbers)
    raise AssertionError(draw)
