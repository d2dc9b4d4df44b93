"""How much of a long suite runs: a fixed part that takes some SECONDS, or with GRISTMILL_WHOLE all.

A long suite is a matrix, such as the kills of a build at each call. Each commit runs the same part,
so that a commit passes what the one before passed; `make soak` runs the whole.
"""

import os
import random
from collections.abc import Sequence
from typing import Final, TypeVar

WHOLE: Final = "GRISTMILL_WHOLE"
SECONDS: Final = 12

Item = TypeVar("Item")


def is_whole() -> bool:
    """Whether each suite runs whole."""
    return bool(os.environ.get(WHOLE))


def dice(suite: str) -> random.Random:
    """Random numbers for a suite: the same in each run."""
    return random.Random(suite)


def count(whole: int, each_second: float) -> int:
    """How many examples a suite makes."""
    return whole if is_whole() else max(1, min(whole, int(SECONDS * each_second)))


def some(items: Sequence[Item], each: float, share: float = 1.0, least: int = 1) -> list[Item]:
    """The items that a suite takes, in their order: all, or some from the first to the last."""
    number = min(len(items), max(least, count(len(items), share / each)))
    last = max(1, number - 1)
    return [items[place * (len(items) - 1) // last] for place in range(number)]
