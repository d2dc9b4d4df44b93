"""Chain of thought and answer of a response of MetaMathQA."""

from __future__ import annotations

import pytest

from gristmill.reasoning.raw.metamath import divided


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("a\nThe answer is: 3", ("a", "3")),
        ("a\n\nThe answer is:3\n", ("a", "3")),
        ("The answer is: 1\nb\nThe answer is: 2", ("The answer is: 1\nb", "2")),
        ("a\nThe answer is: \\begin{x}\n1\n\\end{x}", ("a", "\\begin{x}\n1\n\\end{x}")),
        ("The answer is: 3", (None, "3")),
        ("So The answer is: 3", ("So The answer is: 3", "")),
        ("a\nThe answer is:", ("a", "")),
        ("", ("", "")),
    ],
)
def test_the_last_line_of_the_answer_divides(response: str, expected: tuple[str, str]) -> None:
    assert divided(response) == expected
