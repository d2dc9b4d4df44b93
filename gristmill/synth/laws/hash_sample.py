"""A sample of the different synth_id hashes of a shard: has each split its share of the ids?

Several conversations may have one synth_id, as the answers of one prompt that were sampled, and
then all of them are in one split. So the share is one of ids, not of conversations.
Source: `docs/formats/synth.md#trace-laws`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST: Final = 1 << 17
"""Hashes in a sample, at most."""

_LOW_BITS: Final = 32
_LOW: Final = (1 << _LOW_BITS) - 1


class HashSample:
    """Different hashes of each split, chosen by their low bits.

    most: number of hashes, at most; default MOST.

    The high bits decide the split, so the choice favours none. All hashes are in the sample until
    it is full: the memory for this law does not grow with the number of conversations.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._below = 1 << _LOW_BITS
        self._hashes: dict[str, set[int]] = {"train": set(), "valid": set()}

    def add(self, split: str, hashes: Iterable[int]) -> None:
        """Take the hashes of some conversations; those that are there count once."""
        below = self._below
        self._hashes[split].update(value for value in hashes if value & _LOW < below)
        while self._below > 1 and sum(map(len, self._hashes.values())) > self._most:
            self._below >>= 1
            for name, kept in self._hashes.items():
                self._hashes[name] = {value for value in kept if value & _LOW < self._below}

    def counts(self) -> dict[str, int]:
        """Return the number of hashes of each split."""
        return {name: len(kept) for name, kept in self._hashes.items()}
