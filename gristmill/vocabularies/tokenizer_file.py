"""The file of a tokenizer, and what is known of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from gristmill.contract import BadInput, GristmillError
from gristmill.vocabularies.pinned import (
    ENDOFTEXT,
    PLACED,
    VOCABULARIES,
    Vocabulary,
    read_verified,
)

if TYPE_CHECKING:
    import numpy as np

Form = Literal["tiktoken", "tokenizer.json", "sentencepiece"]
FACTS: Final = "facts.json"
"""The file of a placed folder that says what `Tokenizer` does."""
PROOF: Final = "proof.json"
"""The file of a placed folder that says where the fast engine is equal to the reference."""
_SHORT: Final = 1 << 16


@dataclass(frozen=True)
class Proof:
    """Where gigatoken gives the ids of the reference.

    versions: of gigatoken and of the reference's library, by distribution.
    unproven: the code points for which they are not proven equal, as `proven.UNPROVEN` has them.
    probe: hex sha256 of the fixed texts. texts: how many texts were compared.
    marks: texts of tokens that gigatoken gives other ids, as `<s>` of sentencepiece; the reference
        encodes what holds one.
    """

    why_not: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    unproven: str = ""
    probe: str = ""
    texts: int = 0
    marks: tuple[str, ...] = ()

    def holds_mark(self) -> Callable[[str], object] | None:
        """What tells whether a text holds one of the marks; None where there are none."""
        longest_first = sorted(self.marks, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first))).search if self.marks else None


@dataclass(frozen=True, eq=False)
class TokenizerFile:
    """The file of a tokenizer. It is small and pickles.

    form: of its file. path: the file. sha256: hex, of the file; every load checks it.
    bos: id of the token that begins a document, None where there is none.
    pattern: name of the rule that cuts a text, of `references.PATTERNS`; "" but for tiktoken.
    no_offsets: why a token is not the bytes of its place in the text; "" where it is.
    proof: where the fast engine may be used; None for a pinned vocabulary.
    """

    name: str
    form: Form
    path: Path
    sha256: str
    size: int
    eod: int
    specials: tuple[tuple[str, int], ...]
    bos: int | None = None
    pattern: str = ""
    no_offsets: str = ""
    proof: Proof | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenizerFile) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.sha256, self.path))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that its ids are stored in: uint16 where all of them fit, else int32."""
        import numpy as np  # configs name the engines, and load nothing heavy

        return np.dtype("<u2" if self.size <= _SHORT else "<i4")

    @property
    def special(self) -> Mapping[str, int]:
        """The id of each control token by its text."""
        return dict(self.specials)

    @property
    def eod_text(self) -> str:
        """The text of the token that ends a document."""
        return next(text for text, token in self.specials if token == self.eod)

    def special_id(self, text: str) -> int:
        """The id of a control token. Raises GristmillError where the tokenizer has none of it."""
        found = self.special.get(text)
        if found is None:
            known = ", ".join(list(self.special)[:20]) or "none"
            raise GristmillError(
                f"{text}: is no control token of the tokenizer {self.name}; it has {known}"
            )
        return found

    def read(self) -> bytes:
        """The bytes of its file. Raises BadInput where it is gone or another one."""
        for vocabulary in VOCABULARIES:
            if self.proof is None and vocabulary.sha256 == self.sha256:
                return read_verified(vocabulary, self.path)
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise BadInput(self.path, f"cannot be read ({error.strerror}): run {CURE}") from error
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256:
            raise BadInput(
                self.path, f"has the sha256 {found}, and {self.sha256} is expected: run {CURE}"
            )
        return data


CURE: Final = f"`gristmill materialize {PLACED} --rebuild`"


def file_of_pinned(vocabulary: Vocabulary, path: Path) -> TokenizerFile:
    """The file of a pinned vocabulary.

    vocabulary: `pinned.O200K` or `pinned.GPT2`. path: its file, which is read later.
    """
    return TokenizerFile(
        name=vocabulary.name,
        form="tiktoken",
        path=path,
        sha256=vocabulary.sha256,
        size=vocabulary.size,
        eod=dict(vocabulary.specials)[ENDOFTEXT],
        specials=vocabulary.specials,
        pattern=vocabulary.pattern,
    )
