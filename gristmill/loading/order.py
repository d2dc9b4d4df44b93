"""Which sample a source gives at which draw: epochs without end, each a permutation of all samples.

A draw counts what a source gives, from 0: draw k is place `k % length` of epoch `k // length`.

Source: `docs/formats/loading.md#order`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

import numpy as np

from gristmill.loading.bijection import Bijection, Numbers, key

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
        found = np.empty(len(places), np.int64)
        for epoch in np.unique(epochs).tolist():
            at = np.flatnonzero(epochs == epoch)
            give = self._in_windows if self.window else self._in_all
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

    def _in_all(self, epoch: int, places: Numbers) -> Numbers:
        return self._bijection(epoch, -1, self.length)(places)

    def _in_windows(self, epoch: int, places: Numbers) -> Numbers:
        shards, ends, firsts = self._windows(epoch)
        found = np.empty(len(places), np.int64)
        window_of = np.searchsorted(firsts, places, "right") - 1
        for window in np.unique(window_of).tolist():
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
