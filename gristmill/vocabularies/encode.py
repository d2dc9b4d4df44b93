"""Exact and fast encoding of many texts, with any tokenizer; the sample that both engines encode.

Source: `docs/formats/vocabularies.md#sample-of-a-build`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.vocabularies import engine as engines
from gristmill.vocabularies.engine import AUTO, ENGINES, REFERENCE, Gigatoken, is_panic
from gristmill.vocabularies.pinned import O200K, TokenizerFile, Vocabulary, file_of_pinned, find
from gristmill.vocabularies.references import LIBRARIES, Reference, reference_of

if TYPE_CHECKING:
    import tiktoken

Tokens = npt.NDArray[np.int32]

WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
r"""All that `\s` matches in the patterns of the vocabularies: Unicode's White_Space."""

LONGEST_RUN: Final = 100_000
"""Most white space characters in a row; tiktoken gives up at about a million."""

_ASKED_CHARACTERS: Final = 1 << 20
"""After so many characters the engine is asked again whether it must be renewed."""


_BEFORE_FAST: Final = 20
"""Characters for each token of a vocabulary of ranks that tiktoken, which every build needs for its
sample, encodes in the time in which the fast engine loads: only then it does."""


class Encoded(NamedTuple):
    """The tokens of some texts.

    ids: of each text its token ids, as the bytes of 32-bit integers: use `nbytes`,
        four a token.
    by_reference: places of the texts for which the fast engine is not proven or failed.
    """

    ids: list[memoryview]
    by_reference: frozenset[int]


class Encoder:
    """Encodes texts as the reference of a tokenizer does: tiktoken for the pinned vocabularies."""

    def __init__(self, tokenizer: TokenizerFile, engine: str = AUTO) -> None:
        if engine not in (*ENGINES, REFERENCE):
            raise ValueError(f"engine: {engine!r} is none of {', '.join(ENGINES)}")
        self.tokenizer: Final = tokenizer
        self.why_reference_alone: Final = (
            _why_reference_alone(tokenizer) if engine == AUTO else "the setting says so"
        )
        tokenizer.read()  # a wrong file is refused now
        if self.why_reference_alone:
            return
        proof = tokenizer.proof
        self._unproven = engines.table(
            proof.unproven if proof else engines.UNPROVEN[tokenizer.name]
        )
        self._first_unproven = int(np.flatnonzero(self._unproven)[0])
        self._holds_mark = proof.holds_mark() if proof else None
        self._characters = 0

    @cached_property
    def reference(self) -> Reference:
        """The engine whose ids count, loaded when it is first used."""
        return reference_of(self.tokenizer)

    @cached_property
    def fast(self) -> Gigatoken:
        """The fast engine, loaded when it is first used."""
        return Gigatoken(self.tokenizer)

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Encode each text on its own.

        texts: any strings.

        Raises ValueError for a text that is refused, whatever the engine: UnicodeEncodeError
        for a lone surrogate, which has no UTF-8, and ValueError for more than `LONGEST_RUN`
        white space characters in a row, or where an engine gives up.
        """
        for text in texts:
            if len(text) > LONGEST_RUN:
                _refuse_long_run(text)
        if self.why_reference_alone:
            ids = [self._by_reference(text) for text in texts]
            return Encoded(ids, frozenset(range(len(ids))))
        unproven = self._unproven_places(texts)
        self._characters += sum(map(len, texts))
        if not self.tokenizer.proof and self._characters < _BEFORE_FAST * self.tokenizer.size:
            return Encoded([self._by_reference(text) for text in texts], unproven)
        encode, left = self.fast.encoder(0), 0
        ids = []
        for place, text in enumerate(texts):
            left -= len(text)
            if left < 0:
                # A long list of texts must not pass the bound on memory within one call.
                asked = max(_ASKED_CHARACTERS, len(text))
                left = asked - len(text)
                del encode  # it holds the old object, which goes before a new one comes
                encode = self.fast.encoder(asked)
            if place in unproven:
                ids.append(self._by_reference(text))
                continue
            try:
                ids.append(encode(text).data)
            except BaseException as error:
                if isinstance(error, MemoryError) or not (
                    isinstance(error, Exception) or is_panic(error)
                ):
                    raise
                # What the reference makes of it is the answer, be it tokens or a refusal.
                ids.append(self._by_reference(text))
                unproven |= {place}
                self.fast.forget()
                encode = self.fast.encoder(0)
        return Encoded(ids, unproven)

    def _unproven_places(self, texts: Sequence[str]) -> frozenset[int]:
        """Places of the texts that hold what the engines are not proven equal for."""
        if self._holds_mark is not None:
            marked = {place for place, text in enumerate(texts) if self._holds_mark(text)}
            return frozenset(marked) | self._with_unproven_characters(texts)
        return self._with_unproven_characters(texts)

    def _with_unproven_characters(self, texts: Sequence[str]) -> frozenset[int]:
        places = [place for place, text in enumerate(texts) if not text.isascii()]
        if not self._holds_unproven("".join([texts[place] for place in places])):
            return frozenset()
        return frozenset(place for place in places if self._holds_unproven(texts[place]))

    def _holds_unproven(self, text: str) -> bool:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        # Most characters are below the first unproven one.
        return bool(self._unproven.take(codes[codes >= self._first_unproven]).any())

    def _by_reference(self, text: str) -> memoryview:
        if not text.isascii():
            text.encode()  # raises UnicodeEncodeError for a lone surrogate
        try:
            return self.reference.encode(text).data
        except BaseException as error:
            if not is_panic(error):
                raise
            library = LIBRARIES[self.tokenizer.form]
            raise ValueError(f"{library} gave up: {error}") from error


@lru_cache(maxsize=4)
def encoder_of(tokenizer: TokenizerFile, engine: str = AUTO) -> Encoder:
    """Return this process's encoder of a tokenizer, loaded once. Arguments: see `Encoder`."""
    return Encoder(tokenizer, engine)


def _why_reference_alone(tokenizer: TokenizerFile) -> str | None:
    """Return why gigatoken may not encode for a tokenizer here, None where it may."""
    if tokenizer.proof is None:
        return engines.why_reference_alone()
    return tokenizer.proof.why_not or engines.why_reference_alone(dict(tokenizer.proof.versions))


def encoder(vocabulary: Vocabulary, path: Path, engine: str = AUTO) -> Encoder:
    """Return this process's encoder, loaded once.

    Raises MissingVocabulary, which names `gristmill tokenizers`, where there is no file,
    BadInput where it is not the pinned one, and ValueError for an unknown engine.
    """
    return encoder_of(file_of_pinned(vocabulary, path), engine)


def find_encoder(vocabulary: Vocabulary, data_root: Path, engine: str = AUTO) -> Encoder:
    """Return the encoder of a vocabulary on this machine."""
    return encoder(vocabulary, find(vocabulary, data_root), engine)


def encoding(vocabulary: Path) -> tiktoken.Encoding:
    """tiktoken's encoding for ordinary text, from the o200k file at `vocabulary`."""
    return engines.tiktoken_encoding(O200K, vocabulary)


def _refuse_long_run(text: str) -> None:
    """Raise ValueError for too long a run of white space, in a time linear in the text."""
    for place in range(0, len(text), LONGEST_RUN):
        if text[place] not in WHITE_SPACE:
            continue
        before = text[max(0, place - LONGEST_RUN) : place]
        after = text[place : place + LONGEST_RUN + 1]
        run = len(before) - len(before.rstrip(WHITE_SPACE))
        run += len(after) - len(after.lstrip(WHITE_SPACE))
        if run > LONGEST_RUN:
            raise ValueError(f"more than {LONGEST_RUN} white space characters in a row")


SHARE: Final = 256
"""One row of so many is encoded by both engines, and the first one of each part."""

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_SHOWN: Final = 8


class EnginesDiffer(GristmillError):
    """gigatoken's tokens are not tiktoken's. No row is at fault, and nothing may be published."""


def sampled(source: str, first_row: int, rows: int) -> npt.NDArray[np.int64]:
    """Return which of some rows are in the sample, counted from 0, ascending."""
    numbers = np.arange(first_row, first_row + rows, dtype=np.uint64)
    seed = np.uint64(zlib.crc32(source.encode(errors="surrogatepass")))
    mixed = ((numbers ^ (seed << np.uint64(32))) + np.uint64(1)) * _MIX
    # The upper half decides: the lower bits of a product know only lower bits.
    return np.flatnonzero((mixed >> np.uint64(32)) % np.uint64(SHARE) == 0)


def check_equal(where: str, fast: npt.NDArray[np.int32], reference: npt.NDArray[np.int32]) -> None:
    """Raise EnginesDiffer where tokens to be published are not tiktoken's; both int32 [N]."""
    if np.array_equal(fast, reference):
        return
    both = min(len(fast), len(reference))
    places = np.flatnonzero(fast[:both] != reference[:both])
    place = int(places[0]) if len(places) else both
    shown = slice(place, place + _SHOWN)
    raise EnginesDiffer(
        f"{where}: the engines differ at token {place}: gigatoken gives {len(fast)} tokens, "
        f"there {fast[shown].tolist()}, tiktoken {len(reference)} tokens, there "
        f"{reference[shown].tolist()}. Nothing is published. The row is not at fault: "
        'set `engine = "tiktoken"` and build again, and report this text'
    )
