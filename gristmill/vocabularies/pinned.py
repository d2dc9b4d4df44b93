"""The pinned vocabularies: names, sizes, hashes, and the check of a file against them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary


@dataclass(frozen=True)
class Vocabulary:
    """One pinned vocabulary file in tiktoken's form (a base64 token and its rank a line).

    bytes, sha256: of the pinned file.
    variable: an environment variable that may name the file itself, if any.
    """

    name: str
    file: str
    relative: str
    bytes: int
    sha256: str
    pattern: str
    size: int
    specials: tuple[tuple[str, int], ...]
    variable: str | None = None


ENDOFTEXT: Final = "<|endoftext|>"
HARMONY_NAMES: Final = {
    199998: "<|startoftext|>",
    199999: ENDOFTEXT,
    200002: "<|return|>",
    200003: "<|constrain|>",
    200005: "<|channel|>",
    200006: "<|start|>",
    200007: "<|end|>",
    200008: "<|message|>",
    200012: "<|call|>",
    200018: "<|endofprompt|>",
}
"""Every other id from 200000 to 201087 is `<|reserved_N|>`."""

O200K: Final = Vocabulary(
    name="o200k_harmony",
    file="o200k_base.tiktoken",
    relative="o200k_base.tiktoken",
    bytes=3_613_922,
    sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    pattern="o200k",
    size=201_088,
    specials=tuple((text, token) for token, text in HARMONY_NAMES.items()),
    variable="O200K_HARMONY_VOCAB_PATH",
)
"""openai-harmony's o200k_harmony is o200k_base with its own special tokens."""

GPT2: Final = Vocabulary(
    name="gpt2",
    file="r50k_base.tiktoken",
    relative="gpt2/r50k_base.tiktoken",
    bytes=835_554,
    sha256="306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    pattern="gpt2",
    size=50_257,
    specials=((ENDOFTEXT, 50_256),),
)
"""GPT-2's ranks; the same as tiktoken's r50k_base."""

VOCABULARIES: Final = (O200K, GPT2)

BASE: Final = "TIKTOKEN_ENCODINGS_BASE"

INBOX: Final = "tokenizers"
PLACE: Final = "tokenizer"
"""The folder of all published tokenizers, below the data root."""
PLACED: Final = "tokenizers/placed"
"""The key of the asset of tokenizers that people bring."""


class MissingVocabulary(GristmillError):
    """A vocabulary that is in none of the places where `find` searches."""


class NoVocabularyFile(BadInput, MissingVocabulary):
    """A file that was named as a vocabulary, and is not there."""

    def __reduce__(self) -> tuple[type[NoVocabularyFile], tuple[str, str, int | None]]:
        return NoVocabularyFile, (self.file, self.rule, self.row)


@dataclass(frozen=True)
class PlacedVocabulary(Summary):
    """What `place` wrote."""

    tokens: int
    bytes: int
    sha256: str


def read_verified(vocabulary: Vocabulary, path: Path) -> bytes:
    """The bytes of the vocabulary at `path`.

    Raises BadInput with both hashes where the file is not the pinned one or cannot be read, and
    NoVocabularyFile where it is not there; both errors name `gristmill tokenizers`.
    """
    try:
        with path.open("rb") as file:
            # One byte more than the pinned size is enough to recognise another file.
            data = file.read(vocabulary.bytes + 1)
    except OSError as error:
        rule = f"the vocabulary cannot be read ({error.strerror}): run `gristmill tokenizers`"
        kind = NoVocabularyFile if isinstance(error, FileNotFoundError) else BadInput
        raise kind(path, rule) from error
    digest = hashlib.sha256(data)
    if digest.hexdigest() != vocabulary.sha256:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        raise BadInput(
            path,
            f"is not {vocabulary.file}: sha256 {found} found, {vocabulary.sha256} expected"
            f" ({path.stat().st_size} bytes found, {vocabulary.bytes} expected);"
            " remove it and run `gristmill tokenizers`",
        )
    return data


def drop_folder(data_root: Path) -> Path:
    """Where `fetch` puts vocabularies, as raw input of the tokenizer assets."""
    return data_root / "drops" / INBOX


def place(vocabulary: Vocabulary, source: Path, out: Path) -> PlacedVocabulary:
    """Builder: write the verified file at `source` to `out/<vocabulary.relative>`.

    `out` must not exist. The artifact is one file of exactly the pinned bytes.
    """
    data = read_verified(vocabulary, source)
    out.mkdir(parents=True)
    target = out / vocabulary.relative
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    tokens = data.count(b"\n")
    return PlacedVocabulary(
        files={vocabulary.relative: FileNote(rows=tokens)},
        tokens=tokens,
        bytes=len(data),
        sha256=vocabulary.sha256,
    )
