"""The fast engine, gigatoken, and the ranks of tiktoken, whose ids it must give but for `UNPROVEN`.

An engine knows one tokenizer and encodes one text.

Source: `docs/formats/vocabularies.md#engines`, `docs/formats/vocabularies.md#bounded-memory`.
"""

from __future__ import annotations

import binascii
import json
import resource
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput
from gristmill.vocabularies.pinned import (
    GPT2,
    O200K,
    PATTERNS,
    TokenizerFile,
    Vocabulary,
    file_of_pinned,
)

if TYPE_CHECKING:
    import gigatoken
    import numpy as np
    import numpy.typing as npt
    import tiktoken

AUTO: Final = "auto"
TIKTOKEN: Final = "tiktoken"
REFERENCE: Final = "reference"
"""Any but `AUTO` is the reference alone."""
ENGINES: Final = (AUTO, TIKTOKEN)
"""Values of the setting `engine`: gigatoken where it is proven equal, or tiktoken alone."""

PROVEN_VERSIONS: Final = {"gigatoken": "0.10.0", "tiktoken": "0.14.0"}
"""The versions whose encodings were compared; `UNPROVEN` holds the result."""

_GROWTH_BYTES: Final = 32 << 20
_LEAST_PER_TOKEN: Final = 900
"""Characters for each token of the vocabulary, before which a new object does not pay."""
_PAGE_BYTES: Final = resource.getpagesize()


def why_reference_alone(versions: Mapping[str, str] = PROVEN_VERSIONS) -> str | None:
    """Return why gigatoken cannot be used here, or None where it can."""
    for name, proven in versions.items():
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


def tiktoken_encoding(vocabulary: Vocabulary, path: Path) -> tiktoken.Encoding:
    """tiktoken's encoding for ordinary text, from the file at `path`."""
    return encoding_of(file_of_pinned(vocabulary, path))


def ranks_of(data: bytes, path: Path) -> dict[bytes, int]:
    """The rank of each token in a file of tiktoken's form."""
    ranks = {}
    for row, line in enumerate(data.splitlines(), start=1):
        try:
            token, rank = line.split()
            ranks[binascii.a2b_base64(token, strict_mode=True)] = int(rank)
        except ValueError as error:
            raise BadInput(path, "is not a token as base64, a blank and its rank", row) from error
    return ranks


@lru_cache(maxsize=4)
def encoding_of(tokenizer: TokenizerFile) -> tiktoken.Encoding:
    """tiktoken's encoding of a tokenizer of its form. Raises as `TokenizerFile.read`."""
    import tiktoken

    return tiktoken.Encoding(
        name=f"{tokenizer.name}_ordinary",
        pat_str=PATTERNS[tokenizer.pattern],
        mergeable_ranks=ranks_of(tokenizer.read(), tokenizer.path),
        # No call allows this token. Without any, tiktoken searches for the empty
        # string and finds it at every character; with many, it searches for all of them.
        special_tokens=dict([each for each in tokenizer.specials if each[1] == tokenizer.eod]),
    )


def body_json(data: bytes) -> str:
    """A `tokenizer.json` that encodes bodies: control tokens, truncation and padding are out.

    Its added tokens keep their ids. `data`: the file, which is JSON.
    """
    content = json.loads(data)
    added = content.get("added_tokens") or ()
    content["added_tokens"] = [each for each in added if not each.get("special")]
    content["truncation"] = content["padding"] = content["post_processor"] = None
    return json.dumps(content, ensure_ascii=False)


class Gigatoken:
    """gigatoken with one tokenizer, renewed when its memory of words has grown.

    It does not pickle: each process makes its own. Threads may share it.
    Raises as `TokenizerFile.read`, and ValueError or a panic for a form that gigatoken refuses.
    """

    def __init__(self, tokenizer: TokenizerFile) -> None:
        self._data = tokenizer.read()
        if tokenizer.form == "tokenizer.json":
            self._data = body_json(self._data).encode()
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._renew()

    def encoder(self, characters: int) -> Callable[[str], npt.NDArray[np.uint32]]:
        """Return the function that encodes one text, of an object that has room for more words."""
        with self._lock:
            grown = _resident_bytes() - self._resident > _GROWTH_BYTES
            # Other memory of the process grows, too, and a new object costs time.
            if (grown and self._characters >= self._least) or "_encode" not in self.__dict__:
                self._renew()
            self._characters += characters
            return self._encode

    def forget(self) -> None:
        """Make a new object, as after an error that may have left the old one in disorder."""
        with self._lock:
            self._renew()

    def _renew(self) -> None:
        # The old object goes before the new one comes: each takes a hundred megabytes.
        self.__dict__.pop("_encode", None)
        made = self._made().backend
        self._encode: Callable[[str], npt.NDArray[np.uint32]] = made.encode
        self._least = _LEAST_PER_TOKEN * made.vocab_size
        self._characters = 0
        self._resident = _resident_bytes()

    def _made(self) -> gigatoken.Tokenizer:
        import gigatoken

        if self._tokenizer.form == "tiktoken":
            return gigatoken.Tokenizer.from_tiktoken(
                self._tokenizer.path,
                pretokenizer=self._tokenizer.pattern,
                # Without this argument the texts of control tokens become control tokens.
                special_tokens={},
            )
        if self._tokenizer.form == "sentencepiece":
            return gigatoken.Tokenizer.from_sentencepiece(self._data)
        return gigatoken.Tokenizer.from_json(self._data)


def is_panic(error: BaseException) -> bool:
    """Whether code in Rust panicked. The class cannot be imported, and it is no Exception."""
    return type(error).__name__ == "PanicException"


def _resident_bytes() -> int:
    """Resident memory of this process, now."""
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE_BYTES


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
    import numpy as np  # configs name the engines, and load nothing heavy

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
