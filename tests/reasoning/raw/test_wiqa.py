"""Perturbation and effect of a question."""

from __future__ import annotations

import pytest

from gristmill.reasoning.raw.wiqa import effects


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
def test_a_question_is_divided(stem: str, expected: tuple[str | None, str | None]) -> None:
    assert effects(stem) == (*expected, None)
