"""What is found out about a tokenizer when it is placed: its facts, and the proof of gigatoken.

It is proved with fixed texts and some of its own tokens.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from typing import Any, Final

import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.printable import printable
from gristmill.settings.fields import shown
from gristmill.vocabularies import engine
from gristmill.vocabularies.encode import WHITE_SPACE
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
    no_offsets = _no_offsets(reference, tokens, fixed_texts())
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

    same = [text for text in fixed_texts() if not changes(text)]
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
    texts = [*fixed_texts(), *own_texts(reference.token_bytes())]
    proof = Proof("", versions, "", fixed_digest(), len(texts))

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


_TEXTS: Final = 5000
_OWN_TEXTS: Final = 1000
_SEED: Final = 20_26
_WORDS: Final = (
    "the of and to in is that for with as on it by this are be from or at which have one not but",
    "Problem Answer Step Let Then Therefore Thus Suppose Find Given number numbers apples total",
    "don't we'll I'm you've she'd they're it's can't O'Neill rock'n'roll l'eau DON'T It'S",
    "international representation counterintuitive electroencephalography HTTPServer camelCase",
    "der die Straße Größe über école déjà naïve señor mañana čeština łódź İstanbul ığ ﬁn",
    "Это простая задача Ответ число Ελληνικά αριθμός λόγος שלום مرحبا العدد हिन्दी संख्या ไทย",
    "中文 数学 问题 答案 日本語 カタカナ ひらがな 한국어 문제 Việt số ₂ x² ½ Ⅷ ٣٤ १२",
)
_CODE: Final = (
    "def f(x):\n    return x**2 + 1\n",
    'for (int i = 0; i < n; ++i) { a[i] += "\\n"; }\n',
    "\\frac{a}{b} = \\sqrt{x_1^2 + y^{10}}$$ \\boxed{42}",
    "<div class='a'>&nbsp;</div>\r\n<!-- x -->",
    '{"key": [1, 2.5e-3, null], "k2": "v"}',
    "SELECT * FROM t WHERE id=0x1F; -- c\t\t\n\n",
    "| a | b |\n|---|---|\n- item\n1. one\n# Title\n",
    "https://example.org/a/b?c=d&e=%20#f user@example.org 2026-01-31T23:59:59Z",
)
_ENDS: Final = (" ", " ", " ", "\n", ", ", ". ", "  ", "\n\n", "\t", "", "-", "...", "'", '"')
_RUNS: Final = (" ", "\n", "a", "=", "0", "\u00e9", "\u4e2d", "\u0301", "\U0001f600", "\u200b")


@cache
def fixed_texts() -> Sequence[str]:
    """The fixed texts, the same in every version of Python."""
    dice = random.Random(_SEED)
    return [_text(dice) for _ in range(_TEXTS)]


def fixed_digest() -> str:
    """The hex sha256 of the fixed texts."""
    return hashlib.sha256("\0".join(fixed_texts()).encode()).hexdigest()


def own_texts(tokens: Sequence[bytes]) -> list[str]:
    """Texts of a tokenizer's own tokens, so that its merges are tried.

    tokens: bytes of each id. Those that are no whole characters are left out.
    """
    dice = random.Random(_SEED)
    if not any(tokens):
        return []
    drawn = (dice.choices(tokens, k=40) for _ in range(_OWN_TEXTS))
    return [dice.choice(("", " ", "\n")).join(map(_whole, each)) for each in drawn]


def _whole(token: bytes) -> str:
    return token.decode("utf-8", "ignore")


def _text(dice: random.Random) -> str:
    return "".join(_piece(dice) for _ in range(dice.randrange(1, 30)))


def _piece(dice: random.Random) -> str:
    kind = dice.randrange(20)
    if kind < 12:
        return dice.choice(dice.choice(_WORDS).split()) + dice.choice(_ENDS)
    if kind < 15:
        return dice.choice(_CODE)
    if kind == 15:
        return dice.choice(_RUNS) * dice.randrange(1, 40)
    if kind == 16:
        return "".join(dice.choice(WHITE_SPACE) for _ in range(dice.randrange(1, 6)))
    if kind == 17:
        return str(dice.randrange(10 ** dice.randrange(1, 12))) + dice.choice(_ENDS)
    if kind == 18:
        return "".join(dice.choice("abcdefghijklmnopqrstuvwxyzABC") for _ in range(9))
    return "".join(_character(dice) for _ in range(dice.randrange(1, 9)))


def _character(dice: random.Random) -> str:
    code = dice.randrange(dice.choice((0x80, 0x250, 0x3000, 0xD7FF, 0x1FBFF)))
    return "" if 0xD800 <= code < 0xE000 else chr(code)
