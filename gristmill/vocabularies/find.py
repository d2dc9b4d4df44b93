"""Pinned vocabularies: finding them, verifying them, fetching them at set-up, loading them offline.

What tokens mean to a dataset does not belong here. This is the only module of
the library that reads environment variables (O200K_HARMONY_VOCAB_PATH and
TIKTOKEN_ENCODINGS_BASE) and, for the moment of a load, sets one. Whatever way a
file came, its sha256 decides (`docs/formats/vocabularies.md#verification`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.contract import BadInput
from gristmill.vocabularies.pinned import (
    BASE,
    MissingVocabulary,
    Vocabulary,
    drop_folder,
    read_verified,
)

if TYPE_CHECKING:
    pass


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
    base = os.environ.get(BASE)
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
