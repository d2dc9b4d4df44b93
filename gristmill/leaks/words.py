"""Text to words, slowly: what the kernels of `kernels.py` do, one character after the other.

A word is a run of letters or of digits, folded: case, full width and marks do not tell words apart,
and of a ligature or `ß` the first letter counts. A comma within a number, before three digits, is
no end. A character of a script that has no spaces between words is a word by itself. Numbers and
names are left out of the bare words; a name begins with a capital, and does not end with one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

END, SKIPPED, LETTER, DIGIT, ALONE = range(5)
"""What a character is: no part of a word, passed over, a letter, a digit, a word by itself."""
CAPITAL: Final = 8
"""Is added to the kind of a character that is one."""
KINDS: Final = 16
"""A folded character times this, plus its kind, is what the table has."""
CODES: Final = 0x20000
"""Characters in the table; of those behind it the ideographs are words."""
IDEOGRAPHS: Final = 0x40000
_COMMA: Final = ","
_THREE: Final = 3
_WITHOUT_SPACES: Final = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    *((0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    (0xF900, 0xFAFF),
)
_MASK: Final = (1 << 64) - 1
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_PRIME: Final = 0x9E3779B97F4A7C15
BARE: Final = 0x5851F42D4C957F2D
"""Makes the hash of a run of bare words another one than that of the same words."""
BEGIN: Final = 4
"""Words of the runs that are looked for first: all of a longer run stand in a question, too."""
CHANGED: Final = "4"
"""Rises where words, hashes or what is found by them change, so that nothing older is read."""


class Word(NamedTuple):
    """A word of a text: its folded characters, its place, whether it is an ideograph, and bare."""

    folded: str
    begin: int
    end: int
    alone: bool
    bare: bool


class Seeds(NamedTuple):
    """What makes the hashes of one data root: of a word, the base of a run, the odd multiplier."""

    word: int
    base: int
    mark: int


def seeds_of(key: bytes) -> Seeds:
    """The seeds of the key of a data root."""
    octets = blake2b(b"leaks", key=key, digest_size=24).digest()
    first, base, mark = (int.from_bytes(octets[at : at + 8]) for at in range(0, 24, 8))
    return Seeds(first, base | 1, mark | 1)


@lru_cache(maxsize=1 << 12)
def fold(char: str) -> int:
    """A character folded, times `KINDS`, plus its kind; END for what is no part of a word."""
    if ord(char) >= CODES:
        return ord(char) * KINDS + ALONE if ord(char) < IDEOGRAPHS else END
    if (category := unicodedata.category(char)) in ("Mn", "Me", "Cf"):
        return SKIPPED
    if category[0] not in "LNM":
        return END
    bare = unicodedata.normalize("NFKD", char).casefold()
    first = next((each for each in bare if unicodedata.category(each)[0] in "LN"), char)
    code = ord(first)
    if any(low <= code <= high for low, high in _WITHOUT_SPACES):
        return code * KINDS + ALONE
    if unicodedata.category(first)[0] != "N":
        return code * KINDS + LETTER + (CAPITAL if category in ("Lu", "Lt") else 0)
    value = unicodedata.digit(first, None)
    return (code if value is None else ord("0") + value) * KINDS + DIGIT


@cache
def table() -> npt.NDArray[np.uint32]:
    """`fold` of each character below `CODES`."""
    import numpy as np

    return np.array([fold(chr(code)) for code in range(CODES)], np.uint32)


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text."""
    held, begin, end, kind, capitals = "", 0, 0, END, [False]
    text = f"{text} "  # which ends the last word
    for at, char in enumerate(text):
        code, its = divmod(fold(char), KINDS)
        is_capital, its = divmod(its, CAPITAL)
        if its == SKIPPED or (its == END and kind == DIGIT and _is_within(text, at)):
            continue
        if held and (its != kind or its == ALONE):
            is_bare = kind != DIGIT and (capitals[-1] or not capitals[0])
            yield Word(held, begin, end, kind == ALONE, is_bare)
            held = ""
        if its != END:
            begin, capitals = (begin, capitals) if held else (at, [])
            held += chr(code)
            capitals.append(bool(is_capital))
        end, kind = at + 1, its


def _is_within(text: str, at: int) -> bool:
    """Whether a comma is within a number: three digits follow, and no fourth."""
    after = text[at + 1 : at + _THREE + 2]
    digits = len(after) - len(after.lstrip("0123456789"))
    return text[at] == _COMMA and digits == _THREE


def mixed(word: int) -> int:
    """A number of 64 bits, its bits mixed."""
    word = ((word ^ (word >> 30)) * _FIRST) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND) & _MASK
    return word ^ (word >> 31)


def word_hash(word: str, seeds: Seeds) -> int:
    """The hash of a word."""
    found = seeds.word
    for char in word:
        found = ((found ^ ord(char)) * _PRIME) & _MASK
    return mixed(found)


def run_hash(found: list[Word] | Any, seeds: Seeds, *, is_bare: bool = False) -> int:
    """The hash of a run of words: of an n-gram, or of a whole text; of bare ones another one."""
    total = 0
    for word in found:
        total = (total * seeds.base + word_hash(word.folded, seeds)) & _MASK
    salt = (len(found) * seeds.mark) ^ (BARE if is_bare else 0)
    return mixed((total ^ salt) & _MASK)
