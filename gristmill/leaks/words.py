"""What a word is: the table of characters, by which the kernels of `kernels.py` find words.

A word is a run of letters or of digits, folded: case, full width and marks do not tell words apart,
and of a ligature or `ß` the first letter counts. A comma within a number, before three digits, is
no end. A character of a script that has no spaces between words is a word by itself. Numbers and
names are left out of the bare words; a name begins with a capital, and does not end with one.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Final

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
_WITHOUT_SPACES: Final = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    *((0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    (0xF900, 0xFAFF),
)
BARE: Final = 0x5851F42D4C957F2D
"""Makes the hash of a run of bare words another one than that of the same words."""
BEGIN: Final = 4
"""Words of the runs that are looked for first: all of a longer run stand in a question, too."""
VERSION: Final = f"4 {unicodedata.unidata_version}"
"""Rises where words, hashes or what is found by them change, so that nothing older is read."""

Seeds = npt.NDArray[np.uint64]
"""What makes the hashes of one data root: of a word, the base of a run, the odd multiplier."""


def seeds_of(key: bytes) -> Seeds:
    """The seeds of the key of a data root."""
    octets = blake2b(b"leaks", key=key, digest_size=24).digest()
    return np.frombuffer(octets, ">u8").astype(np.uint64) | np.array([0, 1, 1], np.uint64)


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
    return np.array([fold(chr(code)) for code in range(CODES)], np.uint32)
