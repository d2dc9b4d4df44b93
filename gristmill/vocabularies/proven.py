"""The code points for which gigatoken is not proven equal to tiktoken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.vocabularies.pinned import GPT2, O200K

Ranges = tuple[tuple[int, int], ...]

UNPROVEN: Final[Mapping[str, str]] = {
    O200K.name: (
        "88f c5c cdc 1acf-1add 1ae0-1aeb a7ce-a7cf a7d2 a7d4 a7f1 10940-10959 10ec5-10ec7 "
        "10efa-10efb 11b60-11b67 11db0-11ddb 11de0-11de9 16ea0-16eb8 16ebb-16ed3 16ff2-16ff6 "
        "187f8-187ff 18d09-18d1e 18d80-18df2 1e6c0-1e6de 1e6e0-1e6f5 1e6fe-1e6ff 2b73a-2b73f "
        "2cea2-2cead 323b0-33479"
    ),
    GPT2.name: (
        "88f c5c cdc a7ce-a7cf a7d2 a7d4 a7f1 10940-10959 10ec5-10ec7 11db0-11ddb 11de0-11de9 "
        "16ea0-16eb8 16ebb-16ed3 16ff2-16ff6 187f8-187ff 18d09-18d1e 18d80-18df2 1e6c0-1e6de "
        "1e6e0-1e6e2 1e6e4-1e6e5 1e6e7-1e6ed 1e6f0-1e6f4 1e6fe-1e6ff 2b73a-2b73f 2cea2-2cead "
        "323b0-33479"
    ),
}
"""Ranges of code points by vocabulary, in hexadecimal, both ends included."""

DIGEST: Final = "475a5318e4c816896d750c57bc9948ed5b0eb451f1300efe8f6a846a2e669472"
"""The hex sha256 of `UNPROVEN` and the versions that were compared."""

_SURROGATES: Final = (0xD800, 0xDFFF)
_CODE_POINTS: Final = 0x110000


def ranges(text: str) -> Ranges:
    """Return the first and the last code point of each range that is not proven, ascending.

    text: as a value of `UNPROVEN`.
    """
    pairs = []
    for each in text.split():
        first, _, last = each.partition("-")
        pairs.append((int(first, 16), int(last or first, 16)))
    return tuple(pairs)


def table(text: str) -> npt.NDArray[np.bool_]:
    """Return whether each code point is not proven, bool [0x110000]; surrogates are not.

    text: as a value of `UNPROVEN`.
    """
    unproven = np.zeros(_CODE_POINTS, dtype=np.bool_)
    for first, last in (*ranges(text), _SURROGATES):
        unproven[first : last + 1] = True
    return unproven


def text_of(codes: Iterable[int]) -> str:
    """Return code points as ranges in hexadecimal, as a value of `UNPROVEN`."""
    pairs: list[tuple[int, int]] = []
    for code in sorted(codes):
        if pairs and pairs[-1][1] == code - 1:
            pairs[-1] = (pairs[-1][0], code)
        else:
            pairs.append((code, code))
    return " ".join(f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in pairs)


def digest(versions: Mapping[str, str], unproven: Mapping[str, str]) -> str:
    """Return the hex sha256 of tables and of the versions that were compared.

    versions: by distribution.
    unproven: as `UNPROVEN`.
    """
    lines = [f"{name} {text}\n" for name, text in sorted([*versions.items(), *unproven.items()])]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
