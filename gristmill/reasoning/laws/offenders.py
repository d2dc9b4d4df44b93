"""Offenders of laws over many rows: the first of each law, and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gristmill.contract import Violation

MOST: Final = 20
"""Violations of one law that are given in full."""


class Offenders:
    """Collects violations in an order of its own: law by law, the first `MOST` of each.

    where: file of the rows, for the violations that give a number.

    Memory does not grow with the number of violations.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._first: dict[str, list[Violation]] = {}
        self._counts: Counter[str] = Counter()

    def add(self, law: str, where: str, found: str) -> None:
        """Note a violation."""
        self._counts[law] += 1
        first = self._first.setdefault(law, [])
        if len(first) < MOST:
            first.append(Violation(law, where, found))

    def violations(self) -> Iterator[Violation]:
        """Yield the first violations of each law, and how many more there are."""
        for law, first in self._first.items():
            yield from first
            if more := self._counts[law] - len(first):
                yield Violation(law, self._where, f"{more:,} more of {self._counts[law]:,} rows")
