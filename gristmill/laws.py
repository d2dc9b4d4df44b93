"""What the laws of all families share: the limit on what they name, and errors that end them.

See also `families.py`: which laws an asset has; `<family>/laws/`: the laws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from gristmill.contract import BadInput, GristmillError, Violation

MOST: Final = 20
"""Violations of one law at one place that are named; the others are counted."""


class Few:
    """The first `MOST` violations of each law; the others are counted.

    where: of the violation that says how many more there are.
    rest: its text: {more} are those without a name, {count} all. Default: "{more:,} more rows".

    A law yields violations as they come (`of`, `at`), or adds them and yields them law by law.
    Memory does not grow with their number.
    """

    def __init__(self, where: str, rest: str = "{more:,} more rows") -> None:
        self._where, self._rest = where, rest
        self._named: dict[str, list[Violation]] = {}
        self._counts: Counter[str] = Counter()

    def take(self, law: str, count: int = 1) -> int:
        """Count violations; return how many of them are to be named.

        law: its name. count: of the violations that were found now (default 1).
        """
        room = max(0, MOST - self._counts[law])
        self._counts[law] += count
        return min(count, room)

    def at(self, law: str, where: str, found: str) -> Iterator[Violation]:
        """Yield a violation if it is one of the first."""
        if self.take(law):
            yield Violation(law, where, found)

    def of(self, violations: Iterable[Violation]) -> Iterator[Violation]:
        """Yield the first violations of each law as they come, then how many more there are."""
        for each in violations:
            if self.take(each.law):
                yield each
        yield from self.rest()

    def add(self, law: str, where: str, found: str) -> None:
        """Note a violation."""
        self.add_all(law, 1, [(where, found)])

    def add_all(self, law: str, count: int, places: Iterable[tuple[str, str]]) -> None:
        """Note violations.

        law: its name. count: of the violations.
        places: where each is, and what is there; read as far as they are to be named.
        """
        named = islice(places, self.take(law, count))
        self._named.setdefault(law, []).extend(Violation(law, *each) for each in named)

    def added(self) -> Iterator[Violation]:
        """Yield the first violations that were added, law by law, and how many more there are."""
        for law, named in self._named.items():
            yield from named
            yield from self._more(law)

    def rest(self) -> Iterator[Violation]:
        """Yield of each law how many violations have no name."""
        for law in self._counts:
            yield from self._more(law)

    def _more(self, law: str) -> Iterator[Violation]:
        count = self._counts[law]
        if count > MOST:
            yield Violation(law, self._where, self._rest.format(more=count - MOST, count=count))


def or_unreadable(
    violations: Iterable[Violation], where: str | None = None, law: str = "readable"
) -> Iterator[Violation]:
    """Yield violations; an error that ends them is one, too.

    violations: what a law yields; it may raise GristmillError.
    where: place of the error; default None: the file that a BadInput names, and only a BadInput
        is a violation. law: name of the law that the error breaks (default "readable").
    """
    try:
        yield from violations
    except BadInput as error:
        found = (error.file, error.rule) if where is None else (where, str(error))
        yield Violation(law, *found)
    except GristmillError as error:
        if where is None:
            raise
        yield Violation(law, where, str(error))
