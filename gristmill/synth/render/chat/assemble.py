"""Pieces of conversations to the arrays of one split: tokens and spans of labels.

See also `../documents.py`: the same for Harmony, where control tokens stand around each text.
Source: `docs/formats/chat.md#spans`, `docs/formats/chat.md#control-text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.synth.format import harmony_tokens
from gristmill.synth.render.chat.pieces import OUTSIDE, Piece
from gristmill.synth.render.documents import Documents, each_of, label_span
from gristmill.vocabularies import encode
from gristmill.vocabularies.encode import Encoder
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import Tokenizer

_NOTHING: Final = re.compile("(?!)")


@dataclass(frozen=True)
class Words:
    """A tokenizer with its control tokens, loaded.

    encoder: of ordinary text. lengths: int64 [ids], bytes of each ordinary token.
    control: matches the texts of control tokens. ids: of these, by text. eod: id of the end.
    """

    encoder: Encoder
    lengths: npt.NDArray[np.int64]
    control: re.Pattern[str]
    ids: Mapping[str, int]
    eod: int


@lru_cache(maxsize=4)
def words_of(tokenizer: Tokenizer, engine: str = AUTO) -> Words:
    """A tokenizer, loaded once in a process.

    engine: as of `Tokenizer.encoder`.

    Raises GristmillError where a token is not the bytes of its place, and as `Tokenizer.encoder`.
    """
    if tokenizer.no_offsets:
        raise GristmillError(
            f"{tokenizer.path}: {tokenizer.no_offsets}, so that the spans of its tokens are not "
            "known: take another tokenizer"
        )
    ids, control = dict(tokenizer.special), _NOTHING
    if tokenizer.name == O200K.name:
        reserved = range(O200K.size - 1088, O200K.size)
        ids = {harmony_tokens.name(token): token for token in reserved} | ids
        control = harmony_tokens.TEXT
    elif ids:
        texts = sorted(ids, key=len, reverse=True)
        control = re.compile("|".join(map(re.escape, texts)))
    return Words(tokenizer.encoder(engine), tokenizer.token_lengths, control, ids, tokenizer.eod)


class _Made:
    """What is encoded together: the texts between control tokens, and the regions in them."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sizes: list[int] = []
        self.spans: list[int] = []
        self.order: list[tuple[int, int]] = []
        """Of each text its number and -1, of each control token its id and span."""
        self._open: list[str] = []

    def add(self, text: str, span: int) -> None:
        """A text that touches the one before it."""
        if text:
            self._open.append(text)
            self.sizes.append(len(text) if text.isascii() else len(text.encode()))
            self.spans.append(span)

    def control(self, token: int, span: int) -> None:
        """A control token."""
        self.close()
        self.order.append((token, span))

    def close(self) -> None:
        """No text touches the last one."""
        if self._open:
            self.order.append((len(self.texts), -1))
            self.texts.append("".join(self._open))
            self._open = []


def assemble(talks: Sequence[Sequence[Piece]], words: Words) -> Documents:
    """Encode conversations.

    talks: D conversations as pieces; none gives empty arrays.
    words: their vocabulary.

    A text of the template is divided at control tokens, a text of a message never is. What stands
    between two control tokens is encoded as one text, so that the ids are those of the whole
    conversation. A token that shares a byte with two regions has the greater span code.

    Raises ValueError if a text cannot be encoded, without naming the conversation.
    """
    if not talks:
        none = np.zeros(0, np.int32)
        return Documents(none, np.zeros(0, np.uint8), none, none, none)
    made, ends, counts = _Made(), [], []
    for pieces in talks:
        before = len(made.texts)
        for text, span, message in pieces:
            at = 0
            if message == OUTSIDE:
                for match in words.control.finditer(text):
                    made.add(text[at : match.start()], span)
                    made.control(words.ids[match[0]], span)
                    at = match.end()
            made.add(text[at:], span)
        made.control(words.eod, 0)
        ends.append(len(made.order))
        counts.append(len(made.texts) - before)
    return _documents(made, words, ends, np.array(counts, np.int32))


def _documents(
    made: _Made, words: Words, ends: Sequence[int], counts: npt.NDArray[np.int32]
) -> Documents:
    ids, by_tiktoken = words.encoder.encode(made.texts)
    numbers = np.array([each.nbytes >> 2 for each in ids], np.int64)
    spans = _spans(made, words, ids)
    firsts = np.cumsum(numbers) - numbers
    buffers: list[memoryview | bytes] = []
    codes: list[memoryview | bytes] = []
    sizes = np.ones(len(made.order), np.int64)
    for at, (value, span) in enumerate(made.order):
        if span < 0:
            buffers.append(ids[value])
            size = int(numbers[value])
            begin = int(firsts[value])
            codes.append(spans[begin : begin + size].data)
            sizes[at] = size
        else:
            buffers.append(value.to_bytes(4, "little"))
            codes.append(bytes([span]))
    tokens = np.frombuffer(b"".join(buffers), np.int32)
    code = np.frombuffer(b"".join(codes), np.uint8)
    stops = np.cumsum(sizes)[np.array(ends) - 1]
    lengths = np.diff(stops, prepend=0).astype(np.int32)
    runs, run_counts = _runs(code, stops)
    return Documents(
        tokens=tokens,
        span=label_span(code, lengths),
        lengths=lengths,
        runs=runs,
        run_counts=run_counts,
        texts=counts,
        by_tiktoken=each_of(counts, by_tiktoken),
    )


def _spans(made: _Made, words: Words, ids: Sequence[memoryview]) -> npt.NDArray[np.uint8]:
    """The span code of each token of the texts, uint8. Raises ValueError for other bytes."""
    tokens = np.frombuffer(b"".join(ids), np.int32)
    stops = np.cumsum(words.lengths[tokens], dtype=np.int64)
    bounds = np.cumsum(made.sizes, dtype=np.int64)
    if len(bounds) and stops[-1] != bounds[-1]:
        raise ValueError("its tokens have other bytes than its text")
    code = np.array(made.spans, np.uint8)
    if not len(tokens):
        return np.zeros(0, np.uint8)
    begins = bounds - made.sizes
    # Few regions are looked up among many tokens. A token belongs to the region of its first byte,
    own = np.searchsorted(stops, begins, side="left") + 1
    own[begins == 0] = 0
    spans = np.repeat(code, np.diff(own, append=len(tokens)))
    # and one that a region begins in to that region, too.
    np.maximum.at(spans, np.searchsorted(stops, begins, side="right"), code)
    return spans


def _runs(
    code: npt.NDArray[np.uint8], stops: npt.NDArray[np.int64]
) -> tuple[encode.Tokens, encode.Tokens]:
    """The runs of tokens with one span; the EOD is one of its own. Also how many a document has."""
    begins = np.zeros(len(code), np.bool_)
    begins[1:] = code[1:] != code[:-1]
    begins[stops - 1] = True
    begins[np.concatenate([[0], stops[:-1]])] = True
    places = np.flatnonzero(begins)
    runs = np.diff(places, append=len(code)).astype(np.int32)
    counted = np.diff(np.searchsorted(places, stops), prepend=0).astype(np.int32)
    return runs, counted
