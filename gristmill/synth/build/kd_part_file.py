"""The file of one part of a shard, as a worker writes it and `kd_shard.py` reads it.

A part is a sequence of batches; a batch holds the documents of some consecutive
rows, already split. How parts are kept: `gristmill.run.parts`.
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


@dataclass(frozen=True)
class Batch:
    """documents: of each split, in row order; of them only tokens, span and lengths.

    trace: an Arrow record batch in the stream form, its `document` column still
    counted from 0 in this batch.
    """

    documents: Mapping[str, Documents]
    trace: bytes


def write(file: BinaryIO, batch: Batch) -> None:
    """Append a batch: seven sizes in bytes, then the arrays and the trace."""
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
    """An array's bytes, little endian; a memoryview of no items cannot be cast."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).view(np.uint8).data


def read(path: Path) -> Iterator[Batch]:
    """The batches of a part, in order."""
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
