"""Words that a newcomer stumbles over stay out of code, tests and pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.graph import modules
from tests.paths import CHECKOUT

AVOIDED = re.compile(
    r"(?<![A-Za-z])(told|anew|at[ _]hand|is the business of|stands in|of our own making"
    r"|it lies beside|grinding|harvest|adoption|wing|chips|whole[ _]matrix)(?![A-Za-z])",
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


@pytest.mark.parametrize("file", TEXTS, ids=str)
def test_a_file_keeps_to_the_words_of_the_glossary(file: Path) -> None:
    if file.name == Path(__file__).name:
        return
    for number, line in enumerate((CHECKOUT / file).read_text().splitlines(), 1):
        kept = line
        for text in PUBLISHED:
            kept = kept.replace(text, "")
        avoided = AVOIDED.search(kept)
        assert avoided is None, f"{file}:{number}: {avoided[0]}" if avoided else ""
