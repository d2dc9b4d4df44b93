"""The file of one part of a shard, as `kd_part.py` writes it and `kd_shard.py` reads it.

Source: `docs/formats/synth.md#part-files`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.hashing import HashedFile
from gristmill.synth.render.documents import Documents

_ARRAYS: Final = 5
"""Arrays of a split: low and high halves of tokens, span values, their ends, lengths."""
_SIZES: Final = struct.Struct("<12Q")
SPLITS: Final = ("train", "valid")
"""The splits, at the index that `division.is_valid` gives as a number."""


@dataclass(frozen=True)
class Batch:
    """The documents of some consecutive rows.

    documents: of each split, in row order. A file keeps tokens, span and lengths: the
        tokens as their low 16 and high 8 bits, the span as values and ends of runs.
    trace: rows as a serialized Arrow record batch; documents count from 0 in this
        batch.
    refused: rows that cannot be rendered, as `quarantine.packed` returns them.
    """

    documents: Mapping[str, Documents]
    trace: bytes
    refused: bytes


def write(file: HashedFile, batch: Batch) -> None:
    """Append a batch to the file of a part."""
    arrays: list[memoryview] = []
    for split in SPLITS:
        documents = batch.documents[split]
        tokens, span = documents.tokens, documents.span
        ends = np.append(np.flatnonzero(span[1:] != span[:-1]) + 1, len(span))
        ends = ends[ends > 0]
        arrays += [
            _bytes(tokens.astype("<u2")),
            _bytes((tokens >> 16).astype(np.uint8)),
            _bytes(span[ends - 1]),
            _bytes(ends.astype("<i8")),
            _bytes(documents.lengths),
        ]
    arrays += [memoryview(batch.trace), memoryview(batch.refused)]
    file.write(_SIZES.pack(*map(len, arrays)))
    for array in arrays:
        file.write(array)


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array, little endian. A memoryview of no items cannot be cast."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).view(np.uint8).data


def read(path: Path) -> Iterator[Batch]:
    """Yield the batches of a part, in order."""
    with path.open("rb") as file:
        while head := file.read(_SIZES.size):
            arrays = [file.read(size) for size in _SIZES.unpack(head)]
            documents = {
                split: _documents(*arrays[number * _ARRAYS :][:_ARRAYS])
                for number, split in enumerate(SPLITS)
            }
            yield Batch(documents, *arrays[-2:])


def _documents(low: bytes, high: bytes, values: bytes, ends: bytes, lengths: bytes) -> Documents:
    none = np.zeros(0, dtype=np.int32)
    tokens = np.frombuffer(high, dtype=np.uint8).astype("<i4")
    tokens <<= 16
    tokens |= np.frombuffer(low, dtype="<u2")
    runs = np.diff(np.frombuffer(ends, dtype="<i8"), prepend=0)
    span = np.repeat(np.frombuffer(values, dtype=np.uint8), runs)
    return Documents(tokens, span, np.frombuffer(lengths, dtype="<i4"), none, none)
