"""Regions of a text that may be steps: numbered markers, lines, paragraphs, sentences.

A range is half-open, in characters; white space at its ends is left out, and ranges of white space
alone are. Source: `docs/formats/reasoning.md#step-rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

Range = tuple[int, int]

# Quantifiers are possessive, so that no text of a drop takes more than linear time.
_SPACE: Final = r"[^\S\n]*+"
_STEP: Final = re.compile(
    rf"^{_SPACE}(?=\S)(?:[#*_]++{_SPACE})?step[^\S\n]++(?P<number>[0-9]{{1,4}})[*_]*+{_SPACE}[:.)\-]",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBERED: Final = re.compile(rf"^{_SPACE}(?=\S)(?P<number>[0-9]{{1,4}})[.)](?=\s)", re.MULTILINE)
_NUMBERED_LINES: Final = 2
_BLANK_LINES: Final = re.compile(rf"\n(?:{_SPACE}\n)++")
_SENTENCE_END: Final = re.compile(r"[.!?][\"'”’)\]]*+(?=\s)")


class Marked(NamedTuple):
    """Steps that begin with a marker."""

    ranges: list[Range]
    numbers: list[int]

    @property
    def consecutive(self) -> bool:
        """Whether the numbers are 1, 2, 3 and so on."""
        return self.numbers == list(range(1, len(self.numbers) + 1))


def trimmed(text: str, start: int, end: int) -> Range:
    """A range without the white space at its ends; empty where there is nothing else."""
    part = text[start:end].rstrip()
    end = start + len(part)
    return end - len(part.lstrip()), end


def marked(text: str, start: int, end: int) -> Marked:
    """The steps of a region that begin with a marker at the start of a line.

    Markers are `Step N` before one of `: . ) -`, in any case, with or without Markdown's `#` and
    `*`; if there are none, `N.` or `N)` before white space on two lines or more.
    """
    for pattern, least in ((_STEP, 1), (_NUMBERED, _NUMBERED_LINES)):
        found = list(pattern.finditer(text, start, end))
        if len(found) >= least:
            bounds = [*(match.start() for match in found), end]
            ranges = [trimmed(text, *pair) for pair in pairwise(bounds)]
            return Marked(ranges, [int(match["number"]) for match in found])
    return Marked([], [])


def lines(text: str, start: int, end: int) -> list[Range]:
    r"""The lines of a region, which end at `\n`."""
    ranges = []
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        ranges.append(trimmed(text, start, stop))
        start = stop + 1
    return [pair for pair in ranges if pair[0] < pair[1]]


def paragraphs(text: str, start: int, end: int) -> list[Range]:
    """The paragraphs of a region, between lines without text."""
    matches = _BLANK_LINES.finditer(text, start, end)
    return _between(text, start, end, (match.span() for match in matches))


def sentences(text: str, start: int, end: int) -> list[Range]:
    """The sentences of a region: `.`, `!` or `?`, closing quotes, and white space end one."""
    matches = _SENTENCE_END.finditer(text, start, end)
    return _between(text, start, end, ((match.end(), match.end()) for match in matches))


def _between(text: str, start: int, end: int, separators: Iterable[Range]) -> list[Range]:
    ranges = []
    for stop, following in separators:
        ranges.append(trimmed(text, start, stop))
        start = following
    ranges.append(trimmed(text, start, end))
    return [pair for pair in ranges if pair[0] < pair[1]]
