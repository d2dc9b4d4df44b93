"""Finding a pinned vocabulary on this machine, verified by its sha256.

Of the library, only this package and the command `gristmill/cli.py` (GRISTMILL_DATA)
read environment variables: O200K_HARMONY_VOCAB_PATH and TIKTOKEN_ENCODINGS_BASE
here; `load` sets the second one during a load. See also `fetch`: getting a vocabulary
that is not on this machine. Source:
`docs/formats/vocabularies.md#order-of-places`.
"""

from __future__ import annotations

import os
from pathlib import Path

from gristmill.contract import BadInput
from gristmill.vocabularies.pinned import (
    BASE,
    MissingVocabulary,
    Vocabulary,
    drop_folder,
    read_verified,
)


def find(vocabulary: Vocabulary, data_root: Path) -> Path:
    """The verified file of a vocabulary, without any network.

    vocabulary: one of `pinned.VOCABULARIES`.
    data_root: where `tokenizer/` and `drops/tokenizers/` are.

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
