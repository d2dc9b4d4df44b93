"""Which source gives the sample at a position, and which draw of it, from the position alone.

Nothing is written and nothing is kept but a few blocks, whatever the length of the run.

Source: `docs/formats/loading.md#mixtures`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from gristmill.loading.bijection import Numbers, key, mixed

BLOCK: Final = 4096
"""Positions between two counts of `shares`."""
_KEPT: Final = 4
_UNIT: Final = np.uint64(1 << 40)
_FINER: Final = np.uint64(1 << 11)


def shares(quotas: Sequence[int], positions: int) -> list[int]:
    """How many of the first positions each source has: exact at the sum, and never falling.

    quotas: samples of each source; positions: at most their sum.

    The floors are nested as a tree, so that each is off by the logarithm of the sources at most.
    They are Python's integers, because products of quotas need more than 64 bits.
    """
    if len(quotas) == 1:
        return [positions]
    left, right = quotas[: len(quotas) // 2], quotas[len(quotas) // 2 :]
    total = sum(left) + sum(right)
    of_right = positions * sum(right) // total if total else 0
    return shares(left, positions - of_right) + shares(right, of_right)


class Schedule:
    """Positions of one mixture as sources and draws.

    quotas: samples of each source in one pass; another pass follows. At least one is not 0.
    seed: uint64, of `key`.

    In a block the draws of a source are put at even distances, each moved at random by up to two
    of them: every stretch has the shares to some samples, and the slice of a rank meets no period.
    """

    def __init__(self, quotas: Sequence[int], seed: int) -> None:
        self.quotas, self.seed, self.total = list(quotas), seed, sum(quotas)
        self._blocks: OrderedDict[int, tuple[Numbers, Numbers]] = OrderedDict()

    def at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """Sources and draws, both int64 [N], of positions int64 [N] from the mixture's first."""
        if len(self.quotas) == 1:
            return np.zeros(len(positions), np.int64), positions
        turns, places = np.divmod(positions, self.total)
        blocks, inside = np.divmod(places, BLOCK)
        sources, draws = np.empty(len(blocks), np.int64), np.empty(len(blocks), np.int64)
        for number in np.unique(blocks).tolist():
            at, (source_at, draw_at) = np.flatnonzero(blocks == number), self._block(number)
            sources[at], draws[at] = source_at[inside[at]], draw_at[inside[at]]
        draws += turns * np.array(self.quotas, np.int64)[sources]
        return sources, draws

    def drawn(self, positions: int) -> list[int]:
        """Samples of each source among the first positions."""
        turns, rest = divmod(positions, self.total)
        number, inside = divmod(rest, BLOCK)
        counts = shares(self.quotas, number * BLOCK)
        if inside:
            here = np.bincount(self._block(number)[0][:inside], minlength=len(counts)).tolist()
            counts = [count + more for count, more in zip(counts, here, strict=True)]
        return [turns * quota + count for quota, count in zip(self.quotas, counts, strict=True)]

    def position(self, source: int, draw: int) -> int:
        """The position of a draw of a source; the source has a quota."""
        turn, wanted = divmod(draw, self.quotas[source])
        low, high = 0, -(-self.total // BLOCK)
        while high - low > 1:  # counts of a source never fall from block to block
            middle = (low + high) // 2
            if shares(self.quotas, middle * BLOCK)[source] <= wanted:
                low = middle
            else:
                high = middle
        sources, draws = self._block(low)
        (inside,) = np.flatnonzero((sources == source) & (draws == wanted)).tolist()
        return turn * self.total + low * BLOCK + int(inside)

    def _block(self, number: int) -> tuple[Numbers, Numbers]:
        """Sources and draws of the positions of a block; the last one ends at the total."""
        if number not in self._blocks:
            end = min((number + 1) * BLOCK, self.total)
            before = np.array(shares(self.quotas, number * BLOCK), np.int64)
            counts = np.array(shares(self.quotas, end), np.int64) - before
            source = np.repeat(np.arange(len(counts)), counts)
            inside = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
            with np.errstate(over="ignore"):
                base = np.uint64(key("mix", self.seed, number))
                bits = mixed(base + mixed(np.arange(len(source), dtype=np.uint64)))
            # In units of 2^-40 of a distance: below 2^53, and 2^51 units are the whole block. Two
            # distances wide: with one, 2:1:1 over four ranks still has a period.
            moved = inside.astype(np.uint64) * _UNIT + (bits >> np.uint64(23))
            size = counts[source].astype(np.uint64)
            order = np.argsort(moved % (size * _UNIT) * _FINER // size, kind="stable")
            source_at = source[order]
            # Draws of a source ascend, so that a mixture may end anywhere.
            draw_at = np.empty_like(inside)
            draw_at[np.argsort(source_at, kind="stable")] = before[source] + inside
            self._blocks[number] = source_at, draw_at
            while len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return self._blocks[number]
