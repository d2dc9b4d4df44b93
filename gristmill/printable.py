"""Text that is safe to print: nothing in it that a terminal obeys or SVG forbids."""

from __future__ import annotations

from pathlib import Path


def printable(text: str) -> str:
    """`text` with U+FFFD in place of each character that is not printable."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def cut(text: str, most: int) -> str:
    """`text`, or its first `most` characters and how many more there are.

    most: characters that are kept, 1 or more.
    """
    if len(text) <= most:
        return text
    more = len(text) - most
    return f"{text[:most]}… and {more:,} more character{'' if more == 1 else 's'}"


def plain(text: str, most: int = 2000) -> str:
    """Untrusted text for a place that shows it as it is, such as an event's description.

    text: any string. Line ends stay; other characters that are not printable become U+FFFD.
    most: characters that are kept; how many more there are is said. Default 2,000.
    """
    return "\n".join(map(printable, cut(text.replace("\r\n", "\n"), most).split("\n")))


def is_utf8(path: Path) -> bool:
    """Whether the bytes of a path are UTF-8; what reads Parquet takes no other."""
    return not any("\udc80" <= char <= "\udcff" for char in str(path))
