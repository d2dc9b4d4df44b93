"""The facts of the pages of docs/: each is in one paragraph, item, row or block of a page.

A file beside this one has the facts of one page. A line is a sentence, then the words, numbers or
literals by which it is found, between `::`. A change that makes a fact untrue edits it here, too.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.paths import CHECKOUT

HERE = Path(__file__).parent
FORMATS = CHECKOUT / "docs/formats"
PAGES = [page for page in sorted((CHECKOUT / "docs").rglob("*.md")) if page.parent != FORMATS]
"""The pages for users; those of the formats say some of it again, byte by byte."""
LEAST = 200
BEGINS = re.compile(r"\s*([-*] |\d+\. |\|)")


def units(text: str) -> Iterator[str]:
    """The paragraphs, list items, table rows and blocks of code of a page, each in one line."""
    held: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        fence = line.startswith("```")
        if not fenced and (fence or not line.strip() or BEGINS.match(line)):
            yield " ".join(" ".join(held).split())
            held = []
        held.append(line)
        fenced ^= fence
        if fence and not fenced:
            yield " ".join(" ".join(held).split())
            held = []
    yield " ".join(" ".join(held).split())


@cache
def _alone(word: str) -> re.Pattern[str]:
    """A word or number that is no part of a longer one; Python itself keeps 512 patterns."""
    return re.compile(rf"(?<![\w.]){re.escape(word)}(?!\w)")


def found_in(unit: str, literals: list[str]) -> bool:
    """Whether a unit has all the literals, none of them within a longer word or number."""
    plain = unit.replace("`", "")
    for literal in literals:
        if literal not in plain:
            return False
    words = [literal for literal in literals if literal[0].isalnum() and literal[-1].isalnum()]
    return all(_alone(word).search(plain) for word in words)


@cache
def facts() -> dict[str, list[str]]:
    """The literals of each fact."""
    lines = [line for file in sorted(HERE.glob("*.txt")) for line in file.read_text().splitlines()]
    parts = [[part.strip() for part in line.split(" :: ")] for line in lines]
    return {sentence: literals for sentence, *literals in parts}


@cache
def all_units() -> tuple[str, ...]:
    """The units of all pages, without marks of code, which no literal has."""
    texts = (unit for page in PAGES for unit in units(page.read_text()))
    return tuple(text.replace("`", "") for text in texts if text)


def lost(known: dict[str, list[str]], held: tuple[str, ...]) -> list[str]:
    """The facts that no unit holds."""
    return [
        fact
        for fact, literals in known.items()
        if not any(found_in(unit, literals) for unit in held)
    ]


def test_the_pages_hold_two_hundred_facts_and_each_is_found_by_something() -> None:
    missing = lost(facts(), all_units())
    assert not missing, "say these in docs/, or edit tests/facts/:\n" + "\n".join(missing)
    lines = sum(len(file.read_text().splitlines()) for file in HERE.glob("*.txt"))
    assert len(facts()) == lines >= LEAST, "a sentence stands twice, or facts are gone"
    assert not [fact for fact, literals in facts().items() if not all(literals) or not literals]


def test_a_fact_is_found_whole_in_few_places_of_a_page() -> None:
    """What is found everywhere would not be missed where it is cut."""
    common = {
        fact: places
        for fact, literals in facts().items()
        if (places := sum(found_in(unit, literals) for unit in all_units())) > 2
    }
    assert not common, "\n".join(f"{places} places: {fact}" for fact, places in common.items())
    known = {"a wait": ["80 s", "lock"], "a size": ["2 GB"]}
    assert lost(known, ("waits 80 s for the lock", "2 GB")) == []
    assert lost(known, ("waits 80 s", "the lock", "2 GB")) == ["a wait"]
    assert lost(known, ()) == ["a wait", "a size"]
    assert found_in("takes `80 s`, then", ["80 s"])
    assert not found_in("takes 180 s", ["80 s"]) and not found_in("takes 0.80 s", ["80 s"])
    assert not found_in("80 seconds", ["80 s"])
    assert not found_in("one half, here", ["one half", "there"])
    page = "a\nb\n\n- c\n  d\n- e\n\n| f |\n|---|\n| g |\n\n```sh\n# h\n\n- i\n```\nj\n"
    assert [unit for unit in units(page) if unit] == [
        *("a b", "- c d", "- e", "| f |", "|---|", "| g |", "```sh # h - i ```", "j")
    ]
