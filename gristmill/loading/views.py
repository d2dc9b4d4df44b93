"""Sources made of a source: chosen samples, and one sample of each group.

Source: `docs/formats/loading.md#views`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gristmill.contract import GristmillError, Trace
from gristmill.loading.bijection import Numbers, Words
from gristmill.loading.source import Columns, Identity, Source, digest_of


class Picked:
    """Chosen samples of a source, by their place among these; `read` asks the source by its number.

    source: the whole. numbers: int64 [N], each of a sample, in any order.
    """

    def __init__(self, source: Source, numbers: Numbers) -> None:
        self._source, self._numbers = source, np.asarray(numbers, np.int64)
        own = {**source.identity.numbering, "picked": digest_of(self._numbers)}
        self.identity: Identity = replace(source.identity, numbering=own)
        self.cuts: Numbers = np.array([0, len(self._numbers)], np.int64)

    def read(self, numbers: Numbers) -> Columns:
        """The columns of samples by their place among the chosen ones."""
        return self._source.read(self._numbers[numbers])

    def origin(self, number: int) -> Iterator[Trace]:
        """Where the chosen sample came from."""
        return self._source.origin(int(self._numbers[number]))


class Grouped:
    """One sample of each group an epoch, chosen anew in each: a game, a puzzle and its variants.

    source: the whole. bounds: int64 [G + 1], the first sample of each group, and the number of all.

    Its length is the number of groups; `number` in a batch is that of the sample in the source.
    Raises GristmillError for an empty group.
    """

    def __init__(self, source: Source, bounds: Numbers) -> None:
        self._source, self.bounds = source, np.asarray(bounds, np.int64)
        empty = np.flatnonzero(np.diff(self.bounds) < 1)
        if len(empty) or int(self.bounds[-1]) > int(source.cuts[-1]):
            raise GristmillError(
                f"{source.identity.artifact}: group {int(empty[0]) if len(empty) else 'bounds'} of"
                " its groups has no sample: leave empty groups out"
            )
        own = {**source.identity.numbering, "grouped": digest_of(self.bounds)}
        self.identity: Identity = replace(source.identity, numbering=own)
        self.cuts: Numbers = np.array([0, len(self.bounds) - 1], np.int64)
        self.read, self.origin = source.read, source.origin

    def chosen(self, groups: Numbers, bits: Words) -> Numbers:
        """The samples int64 [N] of groups int64 [N], by the random bits of their draws."""
        begins = self.bounds[groups]
        sizes = (self.bounds[groups + 1] - begins).astype(np.uint64)
        return begins + (bits % sizes).astype(np.int64)

    def group(self, number: int) -> int:
        """The group of a sample. Raises IndexError for a sample outside of all."""
        if not int(self.bounds[0]) <= number < int(self.bounds[-1]):
            raise IndexError(f"no sample {number}: {int(self.bounds[-1])} are in groups")
        return int(np.searchsorted(self.bounds, number, "right")) - 1
