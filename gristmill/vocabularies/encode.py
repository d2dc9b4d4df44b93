"""Ordinary BPE of o200k for many texts at once, by tiktoken, from a verified vocabulary file.

Control tokens are never made here: their text in a body is text.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from gristmill.synth.format import harmony_tokens

if TYPE_CHECKING:
    import tiktoken

Tokens = npt.NDArray[np.int32]

_WORD_END: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# o200k's seven alternatives in o200k's order. The five that look at nothing
# ahead stand in a group of their own: the meaning is the same, and the regex
# engine then runs them as one automaton.
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

_NONE: Final[frozenset[str]] = frozenset()


@lru_cache(maxsize=4)
def encoding(vocabulary: Path) -> tiktoken.Encoding:
    """tiktoken's encoding for the verified o200k file, to be used for ordinary text only."""
    import tiktoken

    from gristmill.vocabularies.pinned import O200K, read_verified

    ranks = {}
    for line in read_verified(O200K, vocabulary).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(
        name="o200k_ordinary",
        pat_str=_PATTERN,
        mergeable_ranks=ranks,
        # Never made, since no call allows it. Without any, tiktoken looks for the
        # empty string and finds it at every character.
        special_tokens={"<|endoftext|>": harmony_tokens.ENDOFTEXT},
    )


def encode(texts: Sequence[str], encoding: tiktoken.Encoding) -> list[memoryview]:
    """Token ids of each text as the bytes of int32; the same as encode_ordinary of each.

    The views' shape is not to be trusted, their `nbytes` is: four a token.

    Raises ValueError for a text that has no tokens: UnicodeEncodeError for a lone
    surrogate, which has no UTF-8, and tiktoken's own for a run of about a million
    spaces, which its regex engine does not get through.
    """
    # What encode_to_numpy(text, disallowed_special=()) does, without its array:
    # lists or arrays of each text cost several per cent of the encoding.
    core = encoding._core_bpe.encode_to_tiktoken_buffer
    return [memoryview(core(text, _NONE)) for text in texts]
