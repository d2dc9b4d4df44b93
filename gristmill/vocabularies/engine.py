"""The two engines that encode text: tiktoken, and gigatoken where it is proven equal.

An engine knows one vocabulary and encodes one text. See also `encode`: which text goes
to which engine; `proven`: where the engines are equal.

Source: `docs/formats/vocabularies.md#engines`, `docs/formats/vocabularies.md#bounded-memory`.
"""

from __future__ import annotations

import base64
import resource
import threading
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.vocabularies.pinned import GPT2, O200K, Vocabulary, read_verified

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tiktoken

AUTO: Final = "auto"
TIKTOKEN: Final = "tiktoken"
ENGINES: Final = (AUTO, TIKTOKEN)
"""Values of the setting `engine`: gigatoken where it is proven equal, or tiktoken alone."""

PROVEN_VERSIONS: Final = {"gigatoken": "0.10.0", "tiktoken": "0.14.0"}
"""The versions whose encodings were compared; `proven` holds the result."""

_WORD_END: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# o200k's seven alternatives in o200k's order. The five without a look-ahead are in
# a group of their own: the meaning is the same, and the regex engine then runs them
# as one automaton.
O200K_PATTERN: Final = (
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

# GPT-2's six alternatives, grouped alike; nothing follows those whose runs need no way back, so
# that the possessive forms of tiktoken's pattern match the same.
GPT2_PATTERN: Final = r"(?:'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)|\s+(?!\S)|\s+"

_PATTERN: Final = {O200K: O200K_PATTERN, GPT2: GPT2_PATTERN}
_ENDOFTEXT: Final = {O200K: 199_999, GPT2: 50_256}
_PRETOKENIZER: Final = {O200K: "o200k", GPT2: "gpt2"}

_GROWTH_BYTES: Final = 256 << 20
_LEAST_CHARACTERS: Final = 1 << 24
_PAGE_BYTES: Final = resource.getpagesize()


def why_tiktoken_alone() -> str | None:
    """Return why gigatoken cannot be used here, or None where it can."""
    for name, proven in PROVEN_VERSIONS.items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            return f"{name} is not installed"
        if installed != proven:
            return f"{name} {installed} is installed, {proven} is proven"
    try:
        import_module("gigatoken")
    except ImportError as error:  # a wheel for another processor or C library
        return f"gigatoken cannot be imported ({error})"
    return None


@lru_cache(maxsize=4)
def tiktoken_encoding(vocabulary: Vocabulary, path: Path) -> tiktoken.Encoding:
    """tiktoken's encoding for ordinary text, from the file at `path`.

    vocabulary: `pinned.O200K` or `pinned.GPT2`.
    path: its file.

    Raises MissingVocabulary where there is no file, and BadInput where it is not the
    pinned one.
    """
    import tiktoken

    ranks = {}
    for line in read_verified(vocabulary, path).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(
        name=f"{vocabulary.name}_ordinary",
        pat_str=_PATTERN[vocabulary],
        mergeable_ranks=ranks,
        # No call allows this token. Without any, tiktoken searches for the empty
        # string and finds it at every character.
        special_tokens={"<|endoftext|>": _ENDOFTEXT[vocabulary]},
    )


class Gigatoken:
    """gigatoken with one vocabulary, renewed when its memory of words has grown.

    vocabulary: `pinned.O200K` or `pinned.GPT2`.

    It does not pickle: each process makes its own. Threads may share it.
    Raises as `tiktoken_encoding`.
    """

    def __init__(self, vocabulary: Vocabulary, path: Path) -> None:
        read_verified(vocabulary, path)
        self._vocabulary, self._path = vocabulary, path
        self._lock = threading.Lock()
        self._renew()

    def encoder(self, characters: int) -> Callable[[str], npt.NDArray[np.uint32]]:
        """Return the function that encodes one text, of an object that has room for more words."""
        with self._lock:
            grown = _resident_bytes() - self._resident > _GROWTH_BYTES
            # Other memory of the process grows, too, and a new object costs time: not
            # before so much text that its words could fill the bound.
            if (grown and self._characters >= _LEAST_CHARACTERS) or "_encode" not in self.__dict__:
                self._renew()
            self._characters += characters
            return self._encode

    def forget(self) -> None:
        """Make a new object, as after an error that may have left the old one in disorder."""
        with self._lock:
            self._renew()

    def _renew(self) -> None:
        import gigatoken

        # The old object goes before the new one comes: each takes a hundred megabytes.
        self.__dict__.pop("_encode", None)
        self._encode: Callable[[str], npt.NDArray[np.uint32]] = gigatoken.Tokenizer.from_tiktoken(
            self._path,
            pretokenizer=_PRETOKENIZER[self._vocabulary],
            # Without this argument the texts of control tokens become control tokens.
            special_tokens={},
        ).encode
        self._characters = 0
        self._resident = _resident_bytes()


def is_panic(error: BaseException) -> bool:
    """Whether code in Rust panicked. The class cannot be imported, and it is no Exception."""
    return type(error).__name__ == "PanicException"


def _resident_bytes() -> int:
    """Resident memory of this process, now."""
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE_BYTES
