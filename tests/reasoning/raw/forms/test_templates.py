"""Templates that are filled in, and patterns that divide a text."""

from __future__ import annotations

import pytest

from gristmill.reasoning.raw.flatten import text
from gristmill.reasoning.raw.forms.templates import Pattern, filled


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("suppose a happens, how will it affect B c.", ("a", "B c")),
        ("suppose a happens, how will it affect b..", ("a", "b.")),
        ("Now suppose a\nb  happens, how will it affect c", ("a\nb", "c")),
        (
            "suppose x happens happens, how will it affect y happens, how will it affect z.",
            ("x happens", "y happens, how will it affect z"),
        ),
        ("suppose a happens", (None, None)),
        ("", (None, None)),
    ],
)
def test_a_pattern_divides_a_text(stem: str, expected: tuple[str | None, str | None]) -> None:
    pattern = Pattern("suppose {one} happens, how will it affect {two}", ".")
    found = pattern.divided(stem)
    assert (found.get("one"), found.get("two")) == expected


@pytest.mark.parametrize("pattern", ["{a}{b}", "{a} {a}", "a", "{}"])
def test_a_pattern_that_cannot_divide_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"names|without a name"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{a}\n\n{b}", "x\n\ny"),
        ("{none}\n\n{b}", "y"),
        ("{a}\n\n{none}", "x"),
        ("{a} {none}\n{b}", "x \ny"),
        ("{{{a}}}", "{x}"),
        ("a\n\n{b}", "a\n\ny"),
    ],
)
def test_an_empty_column_takes_its_line_with_it(template: str, expected: str) -> None:
    fill = filled(template, lambda name: lambda row: text(row.get(name)))
    assert fill({"a": "x", "b": "y", "none": None}) == expected
