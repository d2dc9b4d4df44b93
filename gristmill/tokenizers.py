"""Pinned vocabularies: finding them, verifying them, fetching them at set-up, loading them offline.

What tokens mean to a dataset does not belong here. This is the only module of
the library that reads environment variables (O200K_HARMONY_VOCAB_PATH and
TIKTOKEN_ENCODINGS_BASE) and, for the moment of a load, sets one. Whatever way a
file came, its sha256 decides (DESIGN.md section 7).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary

if TYPE_CHECKING:
    import tiktoken
    from openai_harmony import HarmonyEncoding


@dataclass(frozen=True)
class Vocabulary:
    """One pinned vocabulary file in tiktoken's form (a base64 token and its rank a line).

    name: as the asset is called. file: its official name. relative: where it
    lies under `<data_root>/tokenizer`. bytes and sha256: what it must be.
    variable: an environment variable that may name the file itself, if any.
    """

    name: str
    file: str
    relative: str
    bytes: int
    sha256: str
    variable: str | None = None


O200K: Final = Vocabulary(
    name="o200k_harmony",
    file="o200k_base.tiktoken",
    relative="o200k_base.tiktoken",
    bytes=3_613_922,
    sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    variable="O200K_HARMONY_VOCAB_PATH",
)
"""openai-harmony's o200k_harmony is o200k_base with its own special tokens."""

GPT2: Final = Vocabulary(
    name="gpt2",
    file="r50k_base.tiktoken",
    relative="gpt2/r50k_base.tiktoken",
    bytes=835_554,
    sha256="306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
)
"""GPT-2's ranks; the same as tiktoken's r50k_base."""

VOCABULARIES: Final = (O200K, GPT2)

_BASE: Final = "TIKTOKEN_ENCODINGS_BASE"
_environment = threading.Lock()


class MissingVocabulary(GristmillError):
    """A vocabulary that is in none of the places where `find` looks."""


@dataclass(frozen=True)
class PlacedVocabulary(Summary):
    """What `place` wrote: tokens is the number of lines, bytes the size of the file."""

    tokens: int
    bytes: int
    sha256: str


def read_verified(vocabulary: Vocabulary, path: Path) -> bytes:
    """The bytes of the vocabulary at `path`. BadInput names the hash found and the one expected."""
    with path.open("rb") as file:
        # One byte more than there should be is enough to know that it is another file.
        data = file.read(vocabulary.bytes + 1)
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
    return data_root / "drops" / "tokenizers"


def find(vocabulary: Vocabulary, data_root: Path) -> Path:
    """The verified file of a vocabulary, without any network.

    Looks at the file that O200K_HARMONY_VOCAB_PATH names, in the folder
    TIKTOKEN_ENCODINGS_BASE, in `<data_root>/tokenizer` and in
    `<data_root>/drops/tokenizers`. The first file there counts: a wrong one is
    refused with BadInput, never passed over. MissingVocabulary if there is none.
    """
    if vocabulary.variable and (named := os.environ.get(vocabulary.variable)):
        path = Path(named)
        if not path.is_file():
            raise BadInput(path, f"{vocabulary.variable} names it, but there is no such file")
        read_verified(vocabulary, path)
        return path
    places = [
        data_root / "tokenizer" / vocabulary.relative,
        drop_folder(data_root) / vocabulary.file,
    ]
    base = os.environ.get(_BASE)
    if base and "://" not in base:
        places.insert(0, Path(base) / vocabulary.file)
    for path in places:
        if path.is_file():
            read_verified(vocabulary, path)
            return path
    raise MissingVocabulary(
        f"{vocabulary.file} is not in {data_root}: run `gristmill tokenizers` once, or put it"
        f" into {drop_folder(data_root)}"
    )


def fetch(data_root: Path) -> list[Path]:
    """Put every vocabulary, verified, into `<data_root>/drops/tokenizers`, for set-up.

    `gristmill.vocabulary_source.fetch` with its defaults: no network where the
    files are on this machine.
    """
    from gristmill import vocabulary_source

    return vocabulary_source.fetch(data_root)


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


@contextmanager
def _encodings_base(path: Path) -> Iterator[None]:
    """Let openai-harmony read its vocabulary from the file `path`, and from nowhere else."""
    with _environment, tempfile.TemporaryDirectory(prefix="gristmill-vocabulary-") as folder:
        # It wants a folder and its own file name, which a file named by the
        # user need not have.
        (Path(folder) / O200K.file).symlink_to(path.resolve())
        before = os.environ.get(_BASE)
        os.environ[_BASE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[_BASE]
            else:
                os.environ[_BASE] = before


def load_harmony(data_root: Path) -> HarmonyEncoding:
    """openai-harmony's encoding for gpt-oss, from the verified local file. Raises as `find`."""
    return load_harmony_file(find(O200K, data_root))


def load_harmony_file(path: Path) -> HarmonyEncoding:
    """openai-harmony's encoding for gpt-oss, from the vocabulary at `path`.

    With TIKTOKEN_ENCODINGS_BASE set, openai-harmony 0.0.8 reads
    `<base>/o200k_base.tiktoken` at every load and asks no network. Raises as
    `read_verified`.
    """
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    read_verified(O200K, path)
    with _encodings_base(path):
        return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


def load_gpt2(data_root: Path) -> tiktoken.Encoding:
    """tiktoken's GPT-2 encoding (50,257 tokens, <|endoftext|> 50256), from the verified local file.

    Raises as `find`. Text must be encoded with `encode_ordinary`.
    """
    import base64

    import tiktoken
    from tiktoken_ext.openai_public import ENDOFTEXT, r50k_pat_str

    ranks = {}
    for line in read_verified(GPT2, find(GPT2, data_root)).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(
        name="gpt2",
        explicit_n_vocab=50257,
        pat_str=r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens={ENDOFTEXT: 50256},
    )
