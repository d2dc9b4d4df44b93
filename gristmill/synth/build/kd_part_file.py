"""The file of one part of a shard, as `kd_part.py` writes it and `kd_join.py` reads it.

A part is a sequence of batches. A batch has the documents of some consecutive
rows, by split. Source: `docs/formats/synth.md#part-files`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from gristmill.synth.render.documents import Documents

_SIZES: Final = struct.Struct("<7Q")
SPLITS: Final = ("train", "valid")
"""The splits, at the index that `holdout.is_valid` gives as a number."""


@dataclass(frozen=True)
class Batch:
    """The documents of some consecutive rows.

    documents: of each split, in row order. A file keeps tokens, span and lengths.
    trace: rows as a serialized Arrow record batch; documents count from 0 in this
        batch.
    """

    documents: Mapping[str, Documents]
    trace: bytes


def write(file: BinaryIO, batch: Batch) -> None:
    """Append a batch to the file of a part.

    file: open for writing.
    batch: to append.

    Source: `docs/formats/synth.md#part-files`.
    """
    arrays: list[memoryview] = []
    for split in SPLITS:
        documents = batch.documents[split]
        arrays += [
            _bytes(documents.tokens),
            _bytes(documents.span),
            _bytes(documents.lengths),
        ]
    arrays.append(memoryview(batch.trace))
    file.write(_SIZES.pack(*map(len, arrays)))
    for array in arrays:
        file.write(array)


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array, little endian. A memoryview of no items cannot be cast."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).view(np.uint8).data


def read(path: Path) -> Iterator[Batch]:
    """Yield the batches of a part, in order.

    path: the file.

    The runs of the documents are empty. Source: `docs/formats/synth.md#part-files`.
    """
    none = np.zeros(0, dtype=np.int32)
    with path.open("rb") as file:
        while head := file.read(_SIZES.size):
            arrays = iter([file.read(size) for size in _SIZES.unpack(head)])
            documents = {}
            for split in SPLITS:
                tokens = np.frombuffer(next(arrays), dtype="<i4")
                span = np.frombuffer(next(arrays), dtype=np.uint8)
                lengths = np.frombuffer(next(arrays), dtype="<i4")
                documents[split] = Documents(tokens, span, lengths, none, none)
            yield Batch(documents, next(arrays))
