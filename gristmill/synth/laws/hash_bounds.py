"""The synth_id hashes of both splits, as two bounds: does one value divide the splits?

Source: `docs/formats/synth.md#hash-rule`.
"""

from __future__ import annotations

from collections.abc import Iterable

from gristmill.synth.format import holdout


class HashBounds:
    """The highest hash of a valid conversation and the lowest hash of a train one.

    No id is in both splits if the first is below the second: the memory for this
    law does not grow with the number of conversations.

    highest_valid: -1 without valid conversations.
    lowest_train: 2^64 without train conversations.
    """

    def __init__(self) -> None:
        self.highest_valid = -1
        self.lowest_train = 1 << 64

    def add(self, split: str, synth_ids: Iterable[str]) -> list[int]:
        """Take the ids of some conversations into the bounds; returns their hashes.

        split: "train" or "valid".
        synth_ids: of conversations of this split.
        """
        values = list(map(holdout.value, synth_ids))
        if split == "valid":
            self.highest_valid = max(self.highest_valid, max(values, default=-1))
        else:
            self.lowest_train = min(self.lowest_train, min(values, default=1 << 64))
        return values

    def divide(self) -> bool:
        """Return whether some threshold divides valid from train."""
        return self.highest_valid < self.lowest_train

    def divide_at(self, valid_fraction: float) -> bool:
        """Return whether the threshold of a fraction divides valid from train.

        valid_fraction: from 0 to 1.
        """
        return self.highest_valid < holdout.threshold(valid_fraction) <= self.lowest_train
