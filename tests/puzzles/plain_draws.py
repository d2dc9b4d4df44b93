"""The seeded draws of docs/formats/puzzles.md#randomness, with Python's integers."""

import hashlib
from typing import TypeVar

Item = TypeVar("Item")

_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def key_of(seed: int, kind: str, source: str) -> int:
    """The key of a source's draws."""
    digest = hashlib.sha256(f"{seed}:{kind}:{source}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def mix(word: int) -> int:
    """The finalizer of splitmix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _WORD
    return word ^ (word >> 31)


class Stream:
    """One draw of a source."""

    def __init__(self, key: int, number: int) -> None:
        self.state = mix(key ^ mix(number * _STEP & _WORD))

    def word(self) -> int:
        """The next 64 bits."""
        self.state = (self.state + _STEP) & _WORD
        return mix(self.state)

    def below(self, bound: int) -> int:
        """An integer from 0 to bound - 1."""
        while (word := self.word()) >= _WORD - _WORD % bound:
            pass
        return word % bound

    def shuffle(self, items: list[Item]) -> None:
        """Shuffle in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
