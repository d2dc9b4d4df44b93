"""Which program opens which artifact, and the test that shows it: the tables of docs/consumers.md.

A package `tests/consumers/<name>/` has a `Consumer` in its `__init__.py`. A test that opens an
artifact as this program does is in a module `test_*.py` there, and says so:

    @TRM.opens("puzzles/dataset", how="the folder and its `trm/`")
    def test_the_evaluator_gives_full_marks_for_right_answers() -> None: ...

The programs of `programs.py` have a table of their own. `python -m tests.consumers.matrix` writes
both again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final, NamedTuple, TypeVar

from gristmill import families
from tests.consumers.programs import PROGRAMS
from tests.paths import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "consumers.md"
MARKS: Final = ("<!-- {}: begin -->\n", "<!-- {}: end -->\n")
AS_IT_STANDS: Final = "the folder as it stands"
_SHOWN: Final = "__opens__"

Test = TypeVar("Test", bound=Callable[..., object])


class Opened(NamedTuple):
    """An artifact that a program opens."""

    consumer: Consumer
    asset: str
    how: str
    test: str


@dataclass(frozen=True)
class Consumer:
    """A program that reads artifacts.

    name: as people call it. followed: the version or commit whose demands the tests hold.
    runs: what the tests run: the program itself, a library of it, or its rules, written again.
    """

    name: str
    followed: str
    runs: str = "its rules"

    def opens(self, *assets: str, how: str = AS_IT_STANDS) -> Callable[[Test], Test]:
        """Marks a test that opens artifacts as the program does."""

        def mark(test: Test) -> Test:
            module = test.__module__.replace(".", "/")
            path = f"{module}.py::{test.__name__}"
            cells = [Opened(self, asset, how, path) for asset in assets]
            setattr(test, _SHOWN, [*cells, *getattr(test, _SHOWN, [])])
            return test

        return mark


def cells() -> list[Opened]:
    """What the tests of all consumers open, in the order of programs and assets."""
    found: dict[Opened, None] = {}
    for path in sorted((CHECKOUT / "tests" / "consumers").glob("*/test_*.py")):
        module = import_module(f"tests.consumers.{path.parent.name}.{path.stem}")
        for value in vars(module).values():
            found |= dict.fromkeys(getattr(value, _SHOWN, []))
    return sorted(found, key=lambda cell: (cell.consumer.name.lower(), cell.asset, cell.how))


def unknown() -> set[str]:
    """Keys in the table that are of no asset."""
    known = {kind.asset for each in families.catalogs() for kind in (*each.kinds, *each.others)}
    return {cell.asset for cell in cells()} - known


def page() -> str:
    text = PAGE.read_text()
    for name, rows in (("table", _table()), ("programs", _programs())):
        begin, end = (mark.format(name) for mark in MARKS)
        before, _, rest = text.partition(begin)
        text = "\n".join([before + begin.rstrip(), *rows, end + rest.partition(end)[2]])
    return text


def _table() -> Iterator[str]:
    """The lines of the table: a test and what it gives a program have one, with all artifacts."""
    assets: dict[tuple[Consumer, str, str], list[str]] = {}
    for consumer, asset, how, test in cells():
        assets.setdefault((consumer, how, test), []).append(f"`{asset}`")
    yield "| program | followed | run | artifacts | what it is given | test |"
    yield "|---|---|---|---|---|---|"
    for (who, how, test), opened in assets.items():
        first = f"| {who.name} | {who.followed} | {who.runs} |"
        yield f"{first} {', '.join(opened)} | {how} | `{test}` |"


def _programs() -> Iterator[str]:
    """The lines of the table of programs that were run themselves."""
    yield "| program | commit or version | what it was given | what was compared |"
    yield "|---|---|---|---|"
    for each in sorted(PROGRAMS, key=lambda program: program.name.lower()):
        given = f"`{each.form}`" if "/" in each.form else f"`--to {each.form}`"
        yield f"| {each.name} | {each.commit} | {given} | {each.compared} |"


if __name__ == "__main__":
    PAGE.write_text(page())
