"""A keyed permutation of 0..n-1 that needs no memory, with its inverse; endless epochs of it.

Version 1 of the order: these numbers never change. They need integers of 64 bits alone, so that
they are the same with every NumPy and on every machine. Source: docs/formats/loading.md#order.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from math import isqrt
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_HALF: Final = np.uint64(32)
_FEW: Final = 1024
"""Up to this length the halves are so small that they need more rounds."""
_TABLE: Final = 1 << 16
"""Up to this length all numbers are kept, half a megabyte at most."""
MOST: Final = 1 << 62
"""Lengths are less than this."""


def key(*parts: Any) -> int:
    """64 bits that name these values: of blake2b over their JSON, little endian.

    Seeds are never added: two orders could share a sum.
    """
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def mixed(words: Words) -> Words:
    """The last steps of splitmix64, which turn counters into random bits; uint64 to uint64."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def drawn_bits(draws: Numbers, key: int) -> Words:
    """Random bits uint64 [N] of draws int64 [N].

    key: uint64, of their source.
    """
    bits: Words
    if found := kernels():
        bits = found.drawn_bits(np.ascontiguousarray(draws, np.int64), np.uint64(key))
        return bits
    with np.errstate(over="ignore"):
        bits = mixed(np.uint64(key) + mixed(draws.astype(np.uint64)))
    return bits


def distinct(numbers: Numbers) -> list[int]:
    """The different values of int64 [N], ascending."""
    found = numbers[:0]
    if len(numbers):
        first = numbers.min()
        if numbers.max() - first < len(numbers):  # counting is faster than hashing
            found = np.flatnonzero(np.bincount(numbers - first)) + first
        else:
            found = np.unique(numbers)
    values: list[int] = found.tolist()
    return values


class Bijection:
    """A permutation of 0..length-1: a Feistel network over a rectangle that is hardly larger.

    seed: uint64, of `key`.

    A value outside the length is permuted again until it is inside, which about 2 / sqrt(length)
    of them need.
    """

    def __init__(self, length: int, seed: int) -> None:
        if not 0 <= length < MOST:
            raise ValueError(f"{length} samples: from 0 to 2^62 - 1 can be ordered")
        self.length = length
        self._rows = isqrt(length - 1) + 1 if length > 1 else 1
        self._columns = max(-(-length // self._rows), 1)
        rounds = np.arange(1, (8 if length > _FEW else 32) + 1, dtype=np.uint64)
        with np.errstate(over="ignore"):
            self._keys = mixed(np.uint64(seed) + _GOLDEN * rounds)
        self._table: Numbers | None = None

    def __call__(self, places: Numbers) -> Numbers:
        """The numbers int64 [N] at places int64 [N] of the permutation."""
        if self.length > _TABLE:
            found = kernels(ordered=len(places))
            if found is None:
                return self._walked(places, back=False)
            rectangle = map(np.uint64, (self.length, self._rows, self._columns))
            numbers: Numbers = found.permuted(
                np.ascontiguousarray(places, np.int64), *rectangle, self._keys
            )
            return numbers
        if self._table is None:
            self._table = self._walked(np.arange(self.length), back=False)
        return self._table[places]

    def places(self, numbers: Numbers) -> Numbers:
        """The places int64 [N] of numbers int64 [N]: the inverse."""
        return self._walked(numbers, back=True)

    def _walked(self, values: Numbers, back: bool) -> Numbers:
        once = self._back if back else self._forth
        with np.errstate(over="ignore"):
            found = once(np.asarray(values, np.int64).astype(np.uint64))
            while len(outside := np.flatnonzero(found >= np.uint64(self.length))):
                found[outside] = once(found[outside])
        return found.astype(np.int64)

    def _forth(self, values: Words) -> Words:
        rows, columns = np.uint64(self._rows), np.uint64(self._columns)
        left, right = values // columns, values % columns
        for number, each in enumerate(self._keys):
            if number % 2:
                right = right + _below(left + each, columns)
                right = np.where(right >= columns, right - columns, right)
            else:
                left = left + _below(right + each, rows)
                left = np.where(left >= rows, left - rows, left)
        return left * columns + right

    def _back(self, values: Words) -> Words:
        rows, columns = np.uint64(self._rows), np.uint64(self._columns)
        left, right = values // columns, values % columns
        for number in range(len(self._keys) - 1, -1, -1):
            each = self._keys[number]
            if number % 2:
                right = right + (columns - _below(left + each, columns))
                right = np.where(right >= columns, right - columns, right)
            else:
                left = left + (rows - _below(right + each, rows))
                left = np.where(left >= rows, left - rows, left)
        return left * columns + right


def _below(words: Words, end: np.uint64) -> Words:
    """Random numbers below `end`, at most 2^31, by the upper half of the mixed bits."""
    found: Words = ((mixed(words) >> _HALF) * end) >> _HALF
    return found


VERSION: Final = 1
"""Of the order, as a state names it."""
_EPOCHS: Final = 2
"""Epochs that are kept ready: a batch may lie in two."""
_BIJECTIONS: Final = 16
"""Of windows, too; with a table each has half a megabyte at most."""


class _Windows(NamedTuple):
    """The shards of an epoch in their order, the ends of each, and where windows begin."""

    shards: Numbers
    ends: Numbers
    firsts: Numbers


class Order:
    """Draws of one source as sample numbers.

    cuts: int64 [S + 1], the first number of each shard, and the length.
    seed: of the run; None: by number.
    identity: text that names the data; path and place in a list decide nothing.
    window: 0 permutes all samples; w permutes the shards, then the samples of each run of w shards,
        so that few files are read at a time.
    """

    def __init__(self, cuts: Numbers, seed: int | None, identity: str, window: int = 0) -> None:
        self.cuts, self.seed, self.identity, self.window = cuts, seed, identity, window
        self.length = int(cuts[-1])
        self._epochs: OrderedDict[int, _Windows | None] = OrderedDict()
        self._bijections: OrderedDict[tuple[int, int], Bijection] = OrderedDict()

    def numbers(self, draws: Numbers) -> Numbers:
        """Sample numbers int64 [N] of draws int64 [N], in any order."""
        epochs, places = np.divmod(draws, self.length)
        if self.seed is None:
            return places
        give, different = self._in_windows if self.window else self._in_all, distinct(epochs)
        if len(different) == 1:  # nearly always
            return give(different[0], places)
        found = np.empty(len(places), np.int64)
        for epoch in different:
            at = np.flatnonzero(epochs == epoch)
            found[at] = give(epoch, places[at])
        return found

    def place(self, epoch: int, number: int) -> int:
        """The place of a sample in an epoch: the inverse of `numbers`."""
        if self.seed is None:
            return number
        if not self.window:
            return int(self._bijection(epoch, -1, self.length).places(np.array([number]))[0])
        shards, ends, firsts = self._windows(epoch)
        shard = int(np.searchsorted(self.cuts, number, "right")) - 1
        at = int(np.flatnonzero(shards == shard)[0])
        inside = int(ends[at]) - int(self.cuts[shard + 1]) + number
        window = int(np.searchsorted(firsts, inside, "right")) - 1
        first = int(firsts[window])
        bijection = self._bijection(epoch, window, int(firsts[window + 1]) - first)
        return first + int(bijection.places(np.array([inside - first]))[0])

    def shards(self, epoch: int) -> Numbers:
        """The shards int64 [S] in their order of an epoch; for an order with windows."""
        return self._windows(epoch).shards

    def _in_all(self, epoch: int, places: Numbers) -> Numbers:
        return self._bijection(epoch, -1, self.length)(places)

    def _in_windows(self, epoch: int, places: Numbers) -> Numbers:
        shards, ends, firsts = self._windows(epoch)
        found = np.empty(len(places), np.int64)
        window_of = np.searchsorted(firsts, places, "right") - 1
        for window in distinct(window_of):
            at, first = np.flatnonzero(window_of == window), int(firsts[window])
            bijection = self._bijection(epoch, window, int(firsts[window + 1]) - first)
            # `inside` is a place in the shards in their order of this epoch.
            inside = first + bijection(places[at] - first)
            shard = np.searchsorted(ends, inside, "right")
            begins = np.append(0, ends)[shard]
            found[at] = self.cuts[shards[shard]] + inside - begins
        return found

    def _windows(self, epoch: int) -> _Windows:
        found = self._epochs.get(epoch)
        if found is None:
            count = len(self.cuts) - 1
            shuffled = Bijection(count, key("shards", self.seed, self.identity, epoch))
            shards = shuffled(np.arange(count))
            ends = np.cumsum(np.diff(self.cuts)[shards])
            firsts = np.append(0, ends[self.window - 1 :: self.window])
            if int(firsts[-1]) != self.length:
                firsts = np.append(firsts, self.length)
            found = self._epochs[epoch] = _Windows(shards, ends, firsts)
            while len(self._epochs) > _EPOCHS:
                self._epochs.popitem(last=False)
        return found

    def _bijection(self, epoch: int, window: int, length: int) -> Bijection:
        """That of an epoch (window -1), or of one window of it."""
        found = self._bijections.get((epoch, window))
        if found is None:
            kind, *rest = ("samples",) if window < 0 else ("window", window)
            found = Bijection(length, key(kind, self.seed, self.identity, epoch, *rest))
            self._bijections[epoch, window] = found
            while len(self._bijections) > _BIJECTIONS:
                self._bijections.popitem(last=False)
        return found


PAYS: Final = 1 << 21
"""Numbers that a process orders in NumPy first: what the kernels save then is what numba's import,
half a second, costs."""

_ordered = 0


def kernels(ordered: int = 0) -> ModuleType | None:
    """The kernels, which give what NumPy gives; None where they do not pay yet or numba is off."""
    global _ordered
    _ordered += ordered
    if _ordered < PAYS or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return None
    from gristmill.loading import kernels as found

    return found
