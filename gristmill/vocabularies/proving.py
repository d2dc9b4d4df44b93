"""What is found out about a tokenizer when it is placed: its facts, and the proof of gigatoken."""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Any, Final

import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.printable import printable
from gristmill.settings.fields import shown
from gristmill.vocabularies import engine, probe
from gristmill.vocabularies.engine import Gigatoken, is_panic
from gristmill.vocabularies.pinned import Proof, TokenizerFile
from gristmill.vocabularies.references import LIBRARIES, Reference, reference_of

_FAST: Final = "gigatoken"
_PLANES: Final = (range(0x20000), range(0xE0000, 0xE0200))
"""Of these the code points that Unicode gives to a character are compared."""
_BLOCK: Final = 64
_MOST_UNPROVEN: Final = 20_000
_MOST_MARKS: Final = 1_000
_AROUND_MARKS: Final = ("a{}b", "{}", " {} ", "{}{}", "\n{}x")
_AROUND: Final = (
    *("{}", "a{}b", " {}", "1{}23", "\n{}\n", " {}{}Ab{}", "{}'s", "'{}", ".{}."),
    *("\u4e2d{}\u6587", "\u0301{}\u0301a", "AB{}Cd", "x'l{}"),
)
_PLAIN_KINDS: Final = ("Lo", "Co")
"""Categories in which all characters are cut alike, so that one text for each shows its kind."""
_AROUND_PLAIN: Final = ("a{}1{} {}{}Ab'{}.{}\u0301{}",)


@dataclass(frozen=True)
class Found:
    """What a file says of itself.

    size: number of ids. specials: text and id of each control token, by id.
    no_offsets: why a token is not the bytes of its place in the text; "" where it is.
    seconds: of CPU time that it took, rounded up.
    """

    size: int
    specials: tuple[tuple[str, int], ...]
    no_offsets: str
    seconds: int


def find_facts(tokenizer: TokenizerFile) -> Found:
    """What the reference says of a tokenizer; `size`, `eod` and `no_offsets` of it do not count."""
    began = time.process_time()
    reference = reference_of(tokenizer)
    _refuse_ids(tokenizer, reference)
    specials = dict(sorted(reference.specials().items(), key=lambda each: each[1]))
    tokens = reference.token_bytes()
    _refuse_control(tokenizer, reference, specials)
    size = max(len(tokens), *(token + 1 for token in specials.values()), 1)
    no_offsets = _no_offsets(reference, tokens, probe.texts())
    seconds = math.ceil(time.process_time() - began)
    return Found(size, tuple(specials.items()), no_offsets, seconds)


def changed_by_form(tokenizer: TokenizerFile) -> Callable[[str], bool] | None:
    """What tells whether a tokenizer's form of Unicode changes a text.

    The tokens of all other texts are their bytes. None where that is not so.
    """
    reference = reference_of(tokenizer)
    if (form := reference.unicode_form()) is None:
        return None

    def changes(text: str) -> bool:
        return not text.isascii() and form(text) != text

    same = [text for text in probe.texts() if not changes(text)]
    return None if _no_offsets(reference, reference.token_bytes(), same) else changes


def _refuse_ids(tokenizer: TokenizerFile, reference: Reference) -> None:
    """Raise BadInput where two tokens have one id, or the file and its library differ about one."""
    texts: dict[int, str | bytes] = {}
    ids: dict[str | bytes, int] = {}
    for text, token in reference.named():
        if (other := texts.setdefault(token, text)) != text:
            both = f"{shown(str(other))} and {shown(str(text))} have the id {token}"
        elif (first := ids.setdefault(text, token)) != token:
            both = f"{shown(str(text))} has the ids {first} and {token}"
        else:
            continue
        raise BadInput(tokenizer.path, f"{both}: write one id for each token")


def _refuse_control(
    tokenizer: TokenizerFile, reference: Reference, specials: dict[str, int]
) -> None:
    """Raise BadInput where ordinary text becomes a control token."""
    control = set(specials.values()) - {reference.unknown()}
    for text, token in specials.items():
        for around in ("{}", "a{}b", " {} ", "{}{}"):
            if control.intersection(reference.encode(around.replace("{}", text)).tolist()):
                raise BadInput(
                    tokenizer.path,
                    f"the text {printable(text)} becomes a control token (id {token}), so that a "
                    "user's text could end a document: use a file whose model has no such token",
                )


def _no_offsets(reference: Reference, tokens: Sequence[bytes], texts: Sequence[str]) -> str:
    """Why the bytes of the tokens are not those of a text, "" where they are."""
    for text in texts:
        ids = _ids(reference, text).tolist()
        back = b"".join([tokens[token] for token in ids])
        if back != text.encode():
            at = next(
                (at for at, (a, b) in enumerate(zip(back, text.encode(), strict=False)) if a != b),
                min(len(back), len(text.encode())),
            )
            near = text.encode()[max(0, at - 4) : at + 8].decode("utf-8", "replace")
            came = back[max(0, at - 4) : at + 8].decode("utf-8", "replace")
            return (
                f"its tokens are not the bytes of a text: {printable(repr(near))} comes back as "
                f"{printable(repr(came))}"
            )
    return ""


def prove(tokenizer: TokenizerFile) -> Proof:
    """Compare gigatoken with the reference on the probe, and on the code points of four planes."""
    library = LIBRARIES[tokenizer.form]
    try:
        versions = tuple((name, metadata.version(name)) for name in (_FAST, library))
    except metadata.PackageNotFoundError:
        return Proof(f"{_FAST} is not installed")
    reference = reference_of(tokenizer)
    texts = [*probe.texts(), *probe.own_texts(reference.token_bytes())]
    proof = Proof("", versions, "", probe.digest(), len(texts))

    def refused(why: str) -> Proof:
        return Proof(why, versions, "", proof.probe, len(texts))

    try:
        encode = Gigatoken(tokenizer).encoder(0)
    except BaseException as error:
        if isinstance(error, GristmillError) or not _is_refusal(error):
            raise
        return refused(
            f"gigatoken does not load it: {printable(' '.join(str(error).split()))[:300]}"
        )
    marks = tuple(_unequal_marks(encode, reference))
    if len(marks) > _MOST_MARKS:
        return refused(f"gigatoken gives other ids for {len(marks):,} of its own tokens")
    is_left = Proof(marks=marks).holds_mark() or (lambda _: False)
    if wrong := sum(not is_left(text) and not _equal(encode, reference, text) for text in texts):
        return refused(f"gigatoken gives other ids for {wrong} of {len(texts)} texts")
    compared = {
        code
        for plane in _PLANES
        for code in plane
        if unicodedata.category(chr(code)) not in ("Cn", "Cs")
    }
    unproven = set(_differing(encode, reference, sorted(compared)))
    if len(unproven) > _MOST_UNPROVEN:
        return refused(f"gigatoken gives other ids beside {len(unproven):,} characters")
    rest = (code for code in range(0x110000) if code not in compared)
    unequal = engine.text_of([*unproven, *rest])
    return Proof("", versions, unequal, proof.probe, len(texts), marks)


@lru_cache(maxsize=1 << 13)
def _ids(reference: Reference, text: str) -> npt.NDArray[Any]:
    """The ids of a text; the facts and the proof want those of the same texts."""
    return reference.encode(text)


def _is_refusal(error: BaseException) -> bool:
    return (isinstance(error, Exception) and not isinstance(error, MemoryError)) or is_panic(error)


def _equal(encode: Callable[[str], Any], reference: Reference, text: str) -> bool:
    try:
        return bool(encode(text).tobytes() == _ids(reference, text).tobytes())
    except BaseException as error:
        if not _is_refusal(error):
            raise
        return False


def _unequal_marks(encode: Callable[[str], Any], reference: Reference) -> Iterator[str]:
    """Yield what looks like a token and has other ids: control tokens, and tokens of any kind."""
    texts = (token.decode("utf-8", "replace") for token in reference.token_bytes())
    tokens = (text for text in texts if text and "\ufffd" not in text)
    marks = list(dict.fromkeys(reference.marks()))
    yield from _unequal(encode, reference, marks, _AROUND_MARKS)
    others = sorted(set(tokens) - set(marks))
    yield from _unequal(encode, reference, others, _AROUND_MARKS[:1])


def _differing(
    encode: Callable[[str], Any], reference: Reference, codes: Iterable[int]
) -> Iterator[int]:
    """Yield the code points for which the engines differ in any surrounding."""
    plain, others = list[str](), list[str]()
    for character in map(chr, codes):
        kind = unicodedata.category(character)
        (plain if kind in _PLAIN_KINDS else others).append(character)
    yield from map(ord, _unequal(encode, reference, others, _AROUND))
    yield from map(ord, _unequal(encode, reference, plain, _AROUND_PLAIN))


def _unequal(
    encode: Callable[[str], Any],
    reference: Reference,
    texts: Sequence[str],
    surroundings: Sequence[str],
) -> Iterator[str]:
    """Yield the texts for which the engines differ in any surrounding."""
    for first in range(0, len(texts), _BLOCK):
        block = texts[first : first + _BLOCK]
        if not _equal(encode, reference, _surrounded(block, surroundings)):
            alone = ((text, _surrounded([text], surroundings)) for text in block)
            yield from (text for text, around in alone if not _equal(encode, reference, around))


def _surrounded(texts: Iterable[str], surroundings: Sequence[str]) -> str:
    return "\nx ".join(around.replace("{}", text) for text in texts for around in surroundings)
