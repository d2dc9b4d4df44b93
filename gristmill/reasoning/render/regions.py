"""Regions of a text that may be steps, and the tokens of its characters.

A range is half-open, in characters; white space at its ends is left out. What a token decodes to
alone need not be a character. So characters become bytes, and a token belongs to a range if they
share a byte.
Source: `docs/formats/reasoning.md#step-rules`, `docs/formats/reasoning.md#alignment`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError

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


Offsets = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


def byte_offsets(text: str) -> Offsets | None:
    """Where each character begins in UTF-8: int64 [characters + 1]; None if all have one byte."""
    if text.isascii():
        return None
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    sizes = 1 + (codes > 0x7F).astype(np.int64) + (codes > 0x7FF) + (codes > 0xFFFF)
    return np.concatenate(([0], np.cumsum(sizes)))


class Projection:
    """The tokens of some texts, to which ranges of characters are projected.

    ids: tokens of all texts, one after the other: int32 [tokens].
    lengths: number of bytes of each token of the vocabulary, int64 [size].

    Raises GristmillError where the tokens of a text have not as many bytes as the text.
    """

    def __init__(
        self,
        texts: Sequence[str],
        ids: Ids,
        counts: Sequence[int],
        lengths: npt.NDArray[np.int64],
    ) -> None:
        self._offsets = byte_offsets("".join(texts))
        self._ends = np.cumsum(lengths[ids])
        self._begins = np.concatenate(([0], self._ends[:-1]))
        self.first_character = _starts([len(text) for text in texts])
        self.first_token = _starts(counts)
        last_byte = np.concatenate(([0], self._ends))[self.first_token]
        if self.first_token[-1] != len(ids) or not np.array_equal(
            self._bytes(self.first_character), last_byte
        ):
            raise GristmillError("the tokens of a text have not as many bytes as the text")

    def tokens(self, texts: Offsets, starts: Offsets, ends: Offsets) -> Offsets:
        """Token ranges of ranges of characters: int64 [ranges, 2], half-open, in their own text.

        texts: of each range the place of its text, int64 [ranges].
        starts, ends: of each range its characters in that text, int64 [ranges], with start < end.

        A token is in a range if they share a byte.
        """
        base = self.first_character[texts]
        first = np.searchsorted(self._ends, self._bytes(base + starts), side="right")
        last = np.searchsorted(self._begins, self._bytes(base + ends), side="left")
        return np.stack((first, last), axis=1) - self.first_token[texts][:, None]

    def characters(self, text: int, start: int, end: int) -> tuple[int, int]:
        """Characters that share a byte with tokens of a text: half-open, in that text.

        text: place of the text.
        start, end: tokens of that text, half-open, with start < end.
        """
        token = int(self.first_token[text])
        first, last = int(self._begins[token + start]), int(self._ends[token + end - 1])
        if self._offsets is not None:
            first = int(np.searchsorted(self._offsets, first, side="right")) - 1
            last = int(np.searchsorted(self._offsets, last, side="left"))
        base = int(self.first_character[text])
        return first - base, last - base

    def _bytes(self, characters: Offsets) -> Offsets:
        return characters if self._offsets is None else self._offsets[characters]


def _starts(sizes: Sequence[int]) -> Offsets:
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, np.int64))))
