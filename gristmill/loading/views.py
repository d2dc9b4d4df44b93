"""Sources made of a source: chosen samples, and one sample of each group.

The order is one of the places in a view; `number` in a batch is that of the whole source.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.loading.bijection import Numbers, Words
from gristmill.loading.source import Identity, Source, digest_of


class View:
    """A source whose places are samples of another one.

    source: the whole, or a view of it. kind: the name in `numbering` of the digest of `facts`.
    """

    def __init__(self, source: Source, kind: str, facts: npt.NDArray[Any], length: int) -> None:
        self._source = source
        numbering = {**source.identity.numbering, kind: digest_of(facts)}
        self.identity: Identity = replace(source.identity, numbering=numbering)
        self.cuts: Numbers = np.array([0, length], np.int64)
        self.read, self.origin = source.read, source.origin
        self.shown = getattr(source, "shown", None)

    @property
    def whole(self) -> Source:
        """The source that has the samples."""
        return whole(self._source)

    def chosen(self, places: Numbers, bits: Words) -> Numbers:
        """The samples int64 [N] of places int64 [N], by the random bits uint64 [N] of the draws."""
        own = self._own(places, bits)
        return self._source.chosen(own, bits) if isinstance(self._source, View) else own

    def place(self, number: int) -> int:
        """The place that gives a sample, perhaps among others. Raises IndexError for none."""
        own = self._source.place(number) if isinstance(self._source, View) else number
        return self._place(own)

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        raise NotImplementedError

    def _place(self, number: int) -> int:
        raise NotImplementedError


def whole(source: Source) -> Source:
    """The source that has the samples of a view; else the source itself."""
    return source.whole if isinstance(source, View) else source


class Picked(View):
    """Chosen samples of a source.

    numbers: int64 [N], each of a sample, in any order; with `counts` the first of each range.
    counts: int64 [N], samples of each range; default one. Memory grows with ranges.

    Raises GristmillError for none, a number outside and a sample that is chosen twice.
    """

    def __init__(self, source: Source, numbers: Numbers, counts: Numbers | None = None) -> None:
        firsts = np.asarray(numbers, np.int64)
        sizes = np.ones_like(firsts) if counts is None else np.asarray(counts, np.int64)
        self._firsts, self._ends = firsts, np.cumsum(sizes, dtype=np.int64)
        self._shift = firsts - (self._ends - sizes)
        order = np.argsort(firsts, kind="stable")
        bounds = np.append(firsts[order], source.cuts[-1])
        if not len(firsts) or bounds[0] < 0 or (bounds[:-1] + sizes[order] > bounds[1:]).any():
            raise GristmillError(
                f"{source.identity.artifact}: the chosen samples are none, or one is outside of"
                f" 0 to {int(source.cuts[-1]) - 1:,} or named twice: choose each once"
            )
        super().__init__(source, "picked", np.stack([firsts, sizes]), int(self._ends[-1]))

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        found: Numbers = places + self._shift[np.searchsorted(self._ends, places, "right")]
        return found

    def _place(self, number: int) -> int:
        places = number - self._shift
        begins = np.append(0, self._ends[:-1])
        here = np.flatnonzero((begins <= places) & (places < self._ends))
        if not len(here):
            raise IndexError(f"no sample {number}: it is not among the {self.cuts[-1]:,} chosen")
        return int(places[here[0]])


class Grouped(View):
    """One sample of each group an epoch, another one each time: of a game, of a puzzle's variants.

    bounds: int64 [G + 1], the first sample of each group, and the number of all.

    Its length is the number of groups. Raises GristmillError for an empty group.
    """

    def __init__(self, source: Source, bounds: Numbers) -> None:
        self._bounds = np.asarray(bounds, np.int64)
        empty = np.flatnonzero(np.diff(self._bounds) < 1).tolist()
        if empty or not 0 <= self._bounds[0] < self._bounds[-1] <= source.cuts[-1]:
            raise GristmillError(
                f"{source.identity.artifact}: bounds of its groups: group {(empty or [0])[0]} is"
                f" empty or outside of {int(source.cuts[-1]):,} samples: leave it out"
            )
        super().__init__(source, "grouped", self._bounds, len(self._bounds) - 1)

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        begins = self._bounds[places]
        sizes = (self._bounds[places + 1] - begins).astype(np.uint64)
        return begins + (bits % sizes).astype(np.int64)

    def _place(self, number: int) -> int:
        if not int(self._bounds[0]) <= number < int(self._bounds[-1]):
            raise IndexError(f"no sample {number}: it is in no group")
        return int(np.searchsorted(self._bounds, number, "right")) - 1
