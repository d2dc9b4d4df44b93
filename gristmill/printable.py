"""Text that is safe to print: nothing in it that a terminal obeys or SVG forbids."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with U+FFFD in place of each character that is not printable."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
