"""The engines whose ids count: tiktoken for ranks, tokenizers for JSON, and sentencepiece."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.vocabularies.engine import encoding_of, is_panic
from gristmill.vocabularies.pinned import Form, TokenizerFile

LIBRARIES: Final[Mapping[Form, str]] = {
    "tiktoken": "tiktoken",
    "tokenizer.json": "tokenizers",
    "sentencepiece": "sentencepiece",
}
"""The distribution that is the reference of each form."""

_BYTE: Final = re.compile(r"<0x([0-9A-F]{2})>")
_BLANK: Final = "\u2581"
_UNICODE_FORMS: Final = ("NFC", "NFD", "NFKC", "NFKD")


class Reference(Hashable, Protocol):
    """The engine whose ids count."""

    def encode(self, text: str) -> npt.NDArray[Any]:
        """The ids of a text, of 32 bits; it raises UnicodeEncodeError for a lone surrogate."""

    def token_bytes(self) -> Sequence[bytes]:
        """The bytes of each id; empty for control tokens and ids that nothing has."""

    def specials(self) -> Mapping[str, int]:
        """The id of each control token by its text."""

    def marks(self) -> Sequence[str]:
        """Texts that another engine could take for one token, beside those of `token_bytes`."""

    def named(self) -> Iterable[tuple[str | bytes, int]]:
        """Each token and its id, as the file says and as its library does."""

    def unknown(self) -> int | None:
        """The id that stands for what has no other, None where there is none."""

    def unicode_form(self) -> Callable[[str], str] | None:
        """What brings a text to a form of Unicode before it is cut, such as NFC; None for others.

        None also where a rule changes texts otherwise, or adds a first blank.
        """


@lru_cache(maxsize=4)
def reference_of(tokenizer: TokenizerFile) -> Reference:
    """The reference of a tokenizer, loaded once.

    Raises BadInput where the library refuses the file, and GristmillError where it is not
    installed.
    """
    library = LIBRARIES[tokenizer.form]
    try:
        metadata.version(library)
    except metadata.PackageNotFoundError as error:
        raise GristmillError(
            f"{tokenizer.path}: needs the library {library}: run `pip install {library}`"
        ) from error
    makes: Mapping[Form, Callable[[TokenizerFile], Reference]]
    makes = {"tiktoken": _Ranks, "tokenizer.json": _Json, "sentencepiece": _Pieces}
    try:
        return makes[tokenizer.form](tokenizer)
    except (GristmillError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise BadInput(tokenizer.path, f"{library} does not read it: {error}") from error


class _Ranks:
    """tiktoken."""

    def __init__(self, tokenizer: TokenizerFile) -> None:
        self._tokenizer = tokenizer
        self._of = encoding_of(tokenizer)

    def encode(self, text: str) -> npt.NDArray[Any]:
        return self._of.encode_to_numpy(text, disallowed_special=())

    def token_bytes(self) -> Sequence[bytes]:
        ranks = self._of._mergeable_ranks
        found = [b""] * max(self._tokenizer.size, max(ranks.values(), default=-1) + 1)
        for token, rank in ranks.items():
            found[rank] = token
        return found

    def specials(self) -> Mapping[str, int]:
        return self._tokenizer.special

    def marks(self) -> Sequence[str]:
        return list(self.specials())

    def named(self) -> Iterable[tuple[str | bytes, int]]:
        return [*self._of._mergeable_ranks.items(), *self.specials().items()]

    def unknown(self) -> int | None:
        return None

    def unicode_form(self) -> None:
        return None


class _Json:
    """tokenizers, of a `tokenizer.json`; the file says what is a control token."""

    def __init__(self, tokenizer: TokenizerFile) -> None:
        from tokenizers import Tokenizer as Loaded

        data = tokenizer.read()
        self._content = json.loads(data)
        self._of = Loaded.from_buffer(data)
        if dropout := self._content["model"].get("dropout"):
            rule = "each encoding of a text would have other ids: write null"
            raise BadInput(tokenizer.path, f"model.dropout = {dropout}: {rule}")
        self._of.no_truncation()
        self._of.no_padding()
        # Their texts are then ordinary texts.
        self._of.encode_special_tokens = True

    def encode(self, text: str) -> npt.NDArray[Any]:
        return np.array(self._of.encode(text, add_special_tokens=False).ids, dtype=np.uint32)

    def token_bytes(self) -> Sequence[bytes]:
        vocabulary = self._of.get_vocab()
        found = [b""] * (max(vocabulary.values(), default=-1) + 1)
        added = {each["content"] for each in self._content.get("added_tokens") or ()}
        specials = self.specials()
        of_bytes = _has_type(self._content, "ByteLevel")
        for token, rank in vocabulary.items():
            if token in specials:
                continue
            if token in added:
                found[rank] = token.encode()
            else:
                found[rank] = _byte_level(token) if of_bytes else _piece(token)
        return found

    def specials(self) -> Mapping[str, int]:
        added = self._content.get("added_tokens") or ()
        return {each["content"]: int(each["id"]) for each in added if each.get("special")}

    def marks(self) -> Sequence[str]:
        added = [each["content"] for each in self._content.get("added_tokens") or ()]
        return [*added, *filter(_BYTE.fullmatch, sorted(self._of.get_vocab()))]

    def named(self) -> Iterable[tuple[str | bytes, int]]:
        added = self._content.get("added_tokens") or ()
        return [
            *self._of.get_vocab().items(),
            *((each["content"], int(each["id"])) for each in added),
        ]

    def unknown(self) -> int | None:
        model = self._content.get("model") or {}
        found = model.get("unk_id")
        if isinstance(found, int):
            return found
        token = model.get("unk_token")
        return self._of.token_to_id(token) if isinstance(token, str) else None

    def unicode_form(self) -> Callable[[str], str] | None:
        rule = self._content.get("normalizer") or {}
        parts = rule.get("normalizers") if rule.get("type") == "Sequence" else [rule]
        if not parts or any(part.get("type") not in _UNICODE_FORMS for part in parts):
            return None
        found: Callable[[str], str] = self._of.normalizer.normalize_str
        return found


class _Pieces:
    """sentencepiece."""

    def __init__(self, tokenizer: TokenizerFile) -> None:
        from sentencepiece import SentencePieceProcessor

        self._of = SentencePieceProcessor(model_proto=tokenizer.read())

    def encode(self, text: str) -> npt.NDArray[Any]:
        text.encode()  # raises UnicodeEncodeError for a lone surrogate
        return np.array(self._of.encode(text, out_type=int), dtype=np.uint32)

    def token_bytes(self) -> Sequence[bytes]:
        of = self._of
        specials = set(self.specials().values())
        pieces = (of.id_to_piece(token) for token in range(of.get_piece_size()))
        return [b"" if at in specials else _piece(piece) for at, piece in enumerate(pieces)]

    def specials(self) -> Mapping[str, int]:
        of = self._of
        ids = range(of.get_piece_size())
        return {of.id_to_piece(at): at for at in ids if of.is_control(at) or of.is_unknown(at)}

    def marks(self) -> Sequence[str]:
        pieces = map(self._of.id_to_piece, range(self._of.get_piece_size()))
        return [*self.specials(), *filter(_BYTE.fullmatch, pieces)]

    def named(self) -> Iterable[tuple[str | bytes, int]]:
        return ()  # a piece's id is its place

    def unknown(self) -> int | None:
        found = int(self._of.unk_id())
        return None if found < 0 else found

    def unicode_form(self) -> None:
        return None


def _has_type(content: Mapping[str, Any], wanted: str) -> bool:
    """Whether the decoder or the rule before the model has a part of a type."""
    parts = [content.get("decoder"), content.get("pre_tokenizer")]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if part.get("type") == wanted:
                return True
            parts += [*(part.get("decoders") or ()), *(part.get("pretokenizers") or ())]
    return False


def _piece(token: str) -> bytes:
    """The bytes of a piece of sentencepiece's kind: one byte, or text with a mark for a blank."""
    if found := _BYTE.fullmatch(token):
        return bytes([int(found[1], 16)])
    return token.replace(_BLANK, " ").encode()


def _byte_level(token: str) -> bytes:
    table = _byte_table()
    return b"".join(table.get(character, character.encode()) for character in token)


@lru_cache(maxsize=1)
def _byte_table() -> Mapping[str, bytes]:
    """The byte of each character by which byte-level tokens are written."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): bytes([byte]) for byte in shown} | {
        chr(256 + at): bytes([byte]) for at, byte in enumerate(hidden)
    }
