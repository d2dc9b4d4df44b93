"""What is found out about a tokenizer when it is placed: its facts, and the proof of gigatoken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

from gristmill.contract import BadInput, GristmillError
from gristmill.printable import printable
from gristmill.vocabularies import probe, proven
from gristmill.vocabularies.engine import Gigatoken, is_panic
from gristmill.vocabularies.references import LIBRARIES, Reference, reference_of
from gristmill.vocabularies.tokenizer_file import Proof, TokenizerFile

_FAST: Final = "gigatoken"
_PLANES: Final = (range(0x40000), range(0xE0000, 0xE0200))
"""Code points that are compared; those of other planes are left to the reference."""
_BLOCK: Final = 64
_MOST_UNPROVEN: Final = 20_000
_MOST_MARKS: Final = 1_000
_AROUND_MARKS: Final = ("{m}", "a{m}b", " {m} ", "{m}{m}", "\n{m}x")
_AROUND: Final = (
    *("{c}", "a{c}b", " {c}", "1{c}23", "\n{c}\n", " {c}{c}Ab{c}", "{c}'s", "'{c}", ".{c}."),
    *("\u4e2d{c}\u6587", "\u0301{c}\u0301a", "AB{c}Cd", "x'l{c}"),
)


@dataclass(frozen=True)
class Found:
    """What a file says of itself.

    size: number of ids. specials: text and id of each control token, by id.
    no_offsets: why a token is not the bytes of its place in the text; "" where it is.
    """

    size: int
    specials: tuple[tuple[str, int], ...]
    no_offsets: str


def find_facts(tokenizer: TokenizerFile) -> Found:
    """What the reference says of a tokenizer; `size`, `eod` and `no_offsets` of it do not count."""
    reference = reference_of(tokenizer)
    specials = dict(sorted(reference.specials().items(), key=lambda each: each[1]))
    tokens = reference.token_bytes()
    _refuse_control(tokenizer, reference, specials)
    size = max(len(tokens), *(token + 1 for token in specials.values()), 1)
    return Found(size, tuple(specials.items()), _no_offsets(reference, tokens, probe.texts()))


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
        ids = reference.encode(text).tolist()
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
    unproven = set(_differing(encode, reference))
    if len(unproven) > _MOST_UNPROVEN:
        return refused(f"gigatoken gives other ids beside {len(unproven):,} characters")
    compared = {code for plane in _PLANES for code in plane}
    rest = (code for code in range(0x110000) if code not in compared)
    unequal = proven.text_of([*unproven, *rest])
    return Proof("", versions, unequal, proof.probe, len(texts), marks)


def _is_refusal(error: BaseException) -> bool:
    return (isinstance(error, Exception) and not isinstance(error, MemoryError)) or is_panic(error)


def _equal(encode: Callable[[str], Any], reference: Reference, text: str) -> bool:
    try:
        return bool(encode(text).tobytes() == reference.encode(text).tobytes())
    except BaseException as error:
        if not _is_refusal(error):
            raise
        return False


def _unequal_marks(encode: Callable[[str], Any], reference: Reference) -> Iterator[str]:
    """Yield what looks like a token and has other ids: control tokens, and tokens of any kind."""
    texts = (token.decode("utf-8", "replace") for token in reference.token_bytes())
    tokens = (text for text in texts if text and "\ufffd" not in text)
    marks = list(dict.fromkeys([*reference.marks(), *tokens]))
    for first in range(0, len(marks), _BLOCK):
        block = marks[first : first + _BLOCK]
        if not _equal(encode, reference, _around_marks(block)):
            alone = ((mark, _around_marks([mark])) for mark in block)
            yield from (mark for mark, text in alone if not _equal(encode, reference, text))


def _around_marks(marks: Iterable[str]) -> str:
    return "\nx ".join(around.replace("{m}", mark) for mark in marks for around in _AROUND_MARKS)


def _differing(encode: Callable[[str], Any], reference: Reference) -> Iterator[int]:
    """Yield the code points for which the engines differ in any surrounding."""
    for plane in _PLANES:
        for first in plane[::_BLOCK]:
            block = [c for c in range(first, first + _BLOCK) if not 0xD800 <= c < 0xE000]
            if not _equal(encode, reference, _surrounded(block)):
                yield from (c for c in block if not _equal(encode, reference, _surrounded([c])))


def _surrounded(codes: Iterable[int]) -> str:
    return "\nx ".join(around.replace("{c}", chr(code)) for code in codes for around in _AROUND)
