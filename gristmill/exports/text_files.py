"""Parquet of texts as nanochat reads it: the last file is for validation, row groups are small.

Source: `docs/consumers.md#nanochat`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from gristmill.contract import GristmillError
from gristmill.exports.parquet import writer
from gristmill.exports.table import Split, required

_TEXT: Final = required({"text": pa.string()})
_GROUP: Final = 128
"""Texts of a row group: each rank of a run reads groups of its own, so that many are needed."""
_FILE_BYTES: Final = 256 << 20


def text_files(splits: Sequence[Split], out: Path) -> dict[str, int]:
    """Write the texts of train, then those of validation, else of test, as the last file.

    splits: with texts, of all names. out: the folder.

    Returns the texts of each file by its name, as `shard_00000.parquet`. Raises GristmillError
    where there are none to train on, or none to validate with.
    """
    of = {name: [each for each in splits if each.name == name] for name in ("train", "validation")}
    held = of["validation"] or [each for each in splits if each.name == "test"]
    counts: dict[str, int] = {}
    for what, parts, most in (("train", of["train"], _FILE_BYTES), ("validation", held, None)):
        written = _files(parts, out, len(counts), most)
        if not written:
            rule = "nanochat trains on all files but the last, and validates with that"
            raise GristmillError(f"there is no text of {what}: {rule}: name a corpus that has some")
        counts |= written
    return counts


def _files(splits: Sequence[Split], out: Path, first: int, most: int | None) -> dict[str, int]:
    """Write the next files, and return the texts of each. most: bytes after which one ends."""
    counts: dict[str, int] = {}
    path, file = out, None
    for batch in _groups(splits):
        if file is None or (most is not None and path.stat().st_size > most):
            if file is not None:
                file.close()
            path = out / f"shard_{first + len(counts):05d}.parquet"
            file, counts[path.name] = writer(path, _TEXT), 0
        file.write(batch)
        counts[path.name] += len(batch)
    if file is not None:
        file.close()
    return counts


def _groups(splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    for texts in (texts for each in splits if each.texts is not None for texts in each.texts()):
        for first in range(0, len(texts), _GROUP):
            yield pa.RecordBatch.from_arrays([texts.slice(first, _GROUP)], schema=_TEXT)
