"""Text that a terminal only prints."""

from __future__ import annotations

import pytest

from gristmill.printable import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ü ♔", "plain ü ♔"),
        ("\x1b[31mred", "\N{REPLACEMENT CHARACTER}[31mred"),
        ("a\nb\tc", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"),
        ("\u202eabc", "\N{REPLACEMENT CHARACTER}abc"),
        ("", ""),
    ],
)
def test_each_character_that_is_not_printable_is_replaced(text: str, expected: str) -> None:
    assert printable(text) == expected
