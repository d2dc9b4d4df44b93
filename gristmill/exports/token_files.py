"""Token files of llm.c, which modded-nanogpt reads too: a header, then tokens of 16 or 32 bits.

The separator is before each document, since readers look for beginnings by it. Source:
`docs/consumers.md#llmc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from gristmill.exports.table import Split, cut

_HEADER: Final = 256
_SHORT: Final = (20240520, 1, "<u2")
_LONG: Final = (20240801, 7, "<u4")
"""Magic number, version and dtype of files; the long ones are for more than 65,536 ids."""
FILE_TOKENS: Final = 100_000_000


def token_files(name: str, splits: Sequence[Split], out: Path, most: int) -> dict[str, int]:
    """Write the documents of a split as token files.

    name: of the split. splits: its parts, of one tokenizer. out: the folder.
    most: after so many tokens a file ends, with a whole document.

    Returns the tokens of each file, by its name, as `tokens_train_000000.bin`; raises as `cut`.
    """
    ids = max(each.tokens.ids for each in splits if each.tokens)
    magic, version, dtype = _SHORT if ids <= 1 << 16 else _LONG
    counts: dict[str, int] = {}
    file: BinaryIO | None = None
    for tokens, _, is_last in cut(splits, most, out):
        if file is None:
            path = out / f"tokens_{name}_{len(counts):06d}.bin"
            file = path.open("xb")
            file.write(bytes(4 * _HEADER))
            counts[path.name] = 0
        # Of whole documents the last token is the separator, which goes to the front.
        file.write(np.roll(tokens, 1).astype(dtype, copy=False).data)
        counts[path.name] += len(tokens)
        if is_last:
            _close(file, (magic, version, counts[path.name]))
            file = None
    if file is not None:
        _close(file, (magic, version, counts[path.name]))
    return counts


def _close(file: BinaryIO, said: tuple[int, int, int]) -> None:
    header = np.zeros(_HEADER, "<i4")
    header[:3] = said
    file.seek(0)
    file.write(header.tobytes())
    file.close()
