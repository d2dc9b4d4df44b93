"""Words that a newcomer stumbles over stay out of code, tests and pages."""

import re
from pathlib import Path

import pytest

from tests.architecture.graph import listed, modules
from tests.paths import CHECKOUT

AVOIDED = re.compile(
    r"(?<![A-Za-z])(told|anew|at[ _]hand|is the business of|stands in|of our own making"
    r"|it lies beside|goes on|grinding|harvest|adoption|wing|chips|whole[ _]matrix)(?![A-Za-z])",
    re.IGNORECASE,
)
PUBLISHED = ("fetch the file anew",)
"""Texts in published files, which may not change."""

TEXTS = [
    *(file.relative_to(CHECKOUT) for file in modules(CHECKOUT).values()),
    *(file.relative_to(CHECKOUT) for file in sorted((CHECKOUT / "tests").rglob("*.py"))),
    *(file.relative_to(CHECKOUT) for file in sorted((CHECKOUT / "bench").rglob("*.py"))),
    *(file.relative_to(CHECKOUT) for file in sorted((CHECKOUT / "examples").rglob("*.py"))),
    *(file.relative_to(CHECKOUT) for file in sorted(CHECKOUT.glob("*.md"))),
    *(file.relative_to(CHECKOUT) for file in sorted((CHECKOUT / "docs").rglob("*.md"))),
    *map(Path, ("pyproject.toml", "Makefile", ".ci/run")),
]


def _avoided(text: str) -> list[str]:
    """The words of a text that stay out, each with its line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        kept = line
        for published in PUBLISHED:
            kept = kept.replace(published, "")
        found += [f"line {number}: {word[0]}" for word in AVOIDED.finditer(kept)]
    return found


@pytest.mark.slow
def test_files_keep_to_the_words_of_the_glossary() -> None:
    held = set(TEXTS) - {Path(__file__).relative_to(CHECKOUT)}
    texts = {file: (CHECKOUT / file).read_text() for file in held}
    found = {file: words for file, text in texts.items() if (words := _avoided(text))}
    assert not found, listed(found)
    assert len(texts) > 700


def test_an_avoided_word_is_found() -> None:
    assert _avoided("growing, retold, swings; fetch the file anew") == []
    assert _avoided("It is\nTold anew, at_hand.") == [
        "line 2: Told",
        "line 2: anew",
        "line 2: at_hand",
    ]
