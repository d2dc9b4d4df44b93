"""Ordinary byte-pair encoding of many texts with o200k, by tiktoken.

Control tokens do not belong here: their text in a text is encoded as text.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from gristmill.vocabularies.pinned import O200K, read_verified

if TYPE_CHECKING:
    import tiktoken

Tokens = npt.NDArray[np.int32]

_WORD_END: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# o200k's seven alternatives in o200k's order. The five without a look-ahead are in
# a group of their own: the meaning is the same, and the regex engine then runs them
# as one automaton.
_PATTERN: Final = (
    "(?:"
    + "|".join(
        (
            r"[^\r\n\p{L}\p{N}]?" + _UPPER + "*" + _LOWER + "+" + _WORD_END,
            r"[^\r\n\p{L}\p{N}]?" + _UPPER + "+" + _LOWER + "*" + _WORD_END,
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
        )
    )
    + r")|\s+(?!\S)|\s+"
)

_ENDOFTEXT: Final = 199_999

_NONE: Final[frozenset[str]] = frozenset()


@lru_cache(maxsize=4)
def encoding(vocabulary: Path) -> tiktoken.Encoding:
    """tiktoken's encoding for ordinary text, from the o200k file at `vocabulary`.

    Raises BadInput where the file is not the pinned one.
    """
    import tiktoken

    ranks = {}
    for line in read_verified(O200K, vocabulary).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(
        name="o200k_ordinary",
        pat_str=_PATTERN,
        mergeable_ranks=ranks,
        # No call allows this token. Without any, tiktoken searches for the empty
        # string and finds it at every character.
        special_tokens={"<|endoftext|>": _ENDOFTEXT},
    )


def encode(texts: Sequence[str], encoding: tiktoken.Encoding) -> list[memoryview]:
    """Token ids of each text as the bytes of int32; the same as encode_ordinary of each.

    texts: any strings.
    encoding: from `encoding`.

    Use the views' `nbytes`, four a token; their shape may be wrong.

    Raises ValueError for a text that cannot be encoded: UnicodeEncodeError for a
    lone surrogate, which has no UTF-8, and tiktoken's own for a run of about a
    million spaces, at which its regex engine gives up.
    """
    # encode_to_numpy(text, disallowed_special=()) does the same and makes an array:
    # lists or arrays of each text take several per cent of the time.
    core = encoding._core_bpe.encode_to_tiktoken_buffer
    return [memoryview(core(text, _NONE)) for text in texts]
