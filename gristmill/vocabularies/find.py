"""Finding a pinned vocabulary on this machine, verified by its sha256, and loading it offline.

Of the library, only this package and the command `gristmill/cli.py` (GRISTMILL_DATA) read
environment variables: O200K_HARMONY_VOCAB_PATH and TIKTOKEN_ENCODINGS_BASE here; loading sets the
second one meanwhile. Source: `docs/formats/vocabularies.md#order-of-places`,
`docs/formats/vocabularies.md#loading-offline`.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.contract import BadInput
from gristmill.vocabularies.pinned import (
    BASE,
    GPT2,
    O200K,
    MissingVocabulary,
    Vocabulary,
    drop_folder,
    read_verified,
)

if TYPE_CHECKING:
    import tiktoken
    from openai_harmony import HarmonyEncoding


def find(vocabulary: Vocabulary, data_root: Path) -> Path:
    """The verified file of a vocabulary, without any network.

    Takes the first file of these: the one that O200K_HARMONY_VOCAB_PATH names, in
    the folder TIKTOKEN_ENCODINGS_BASE, in `<data_root>/tokenizer`, in
    `<data_root>/drops/tokenizers`. Raises BadInput where that file is not the
    pinned one, and MissingVocabulary where there is none.
    """
    if vocabulary.variable and (named := os.environ.get(vocabulary.variable)):
        path = Path(named)
        if not path.is_file():
            raise BadInput(path, f"{vocabulary.variable} names this file, which does not exist")
        read_verified(vocabulary, path)
        return path
    places = [
        data_root / "tokenizer" / vocabulary.relative,
        drop_folder(data_root) / vocabulary.file,
    ]
    base = os.environ.get(BASE)
    if base and "://" not in base:
        places.insert(0, Path(base) / vocabulary.file)
    for path in places:
        if path.is_file():
            read_verified(vocabulary, path)
            return path
    raise MissingVocabulary(
        f"{vocabulary.file} is not in {data_root}: run `gristmill tokenizers`, or put the file"
        f" into {drop_folder(data_root)}"
    )


_environment = threading.Lock()


@contextmanager
def _encodings_base(path: Path) -> Iterator[None]:
    """Let openai-harmony read its vocabulary from the file `path` alone."""
    with _environment, tempfile.TemporaryDirectory(prefix="gristmill-vocabulary-") as folder:
        # openai-harmony takes a folder and expects its own file name in it, which a
        # file that the user names need not have.
        (Path(folder) / O200K.file).symlink_to(path.resolve())
        before = os.environ.get(BASE)
        os.environ[BASE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[BASE]
            else:
                os.environ[BASE] = before


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
    """tiktoken's GPT-2 encoding (50,257 tokens, <|endoftext|> 50256), from the verified file."""
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
