"""Characters of rendered texts to tokens, byte by byte, and back.

A token has a number of bytes; what it decodes to alone need not be a character. So characters
become bytes, and a token belongs to a range if they share a byte.
Source: `docs/formats/reasoning.md#alignment`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError

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
