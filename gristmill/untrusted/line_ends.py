"""Texts whose lines end in CR alone, as old Macs and some exports write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

_LOOKED: Final = 1 << 20
"""Bytes at the beginning of a text that decide, a part of it more or less."""
_BEGUN: Final = 2
"""Lines that must be whole. A single line needs no end."""


def with_line_feeds(texts: Iterator[bytes], is_line: Callable[[bytes], bool]) -> Iterator[bytes]:
    """A text with LF for CR, if its lines end in CR alone; else the text as it is.

    Every byte keeps its place. Lines end in CR alone where the first MiB has no LF, and the first
    two lines that are not blank pass `is_line`, since CR may also stand within a line.
    """
    seen: list[bytes] = []
    size = 0
    for part in texts:
        seen.append(part)
        size += len(part)
        if b"\n" in part or size >= _LOOKED:
            break
    head = b"".join(seen)
    whole = chain([head], texts)
    begun = [line for line in head.split(b"\r") if line.strip()][:_BEGUN]
    if b"\n" in head or len(begun) < _BEGUN or not all(map(is_line, begun)):
        return whole
    return (part.replace(b"\r", b"\n") for part in whole)
