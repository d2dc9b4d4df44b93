"""Megatron's IndexedDataset files: written in one pass, read as plain arrays.

What the numbers mean belongs elsewhere. Source: spec synth_kd, section 8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput

_MAGIC: Final = b"MMIDIDX\x00\x00"
_HEADER: Final = struct.Struct("<9sQBQQ")
_CODES: Final[dict[np.dtype[Any], int]] = {np.dtype("u1"): 1, np.dtype("<i4"): 4}
_DTYPES: Final[dict[int, np.dtype[Any]]] = {code: dtype for dtype, code in _CODES.items()}
_CHUNK: Final = 1 << 16


class IndexedWriter:
    """Writes `<prefix>.bin` and `<prefix>.idx`, one sequence a document, in constant memory.

    A context manager; the files are whole once it closes without an error.
    """

    def __init__(self, prefix: Path, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._code = _CODES[self._dtype]
        self.count = 0
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self._bin = prefix.with_name(prefix.name + ".bin").open("xb")
        # Lengths stand first in the index, so they can be written as they come.
        self._idx = prefix.with_name(prefix.name + ".idx").open("xb+")
        self._idx.write(bytes(_HEADER.size))

    def add(self, values: npt.NDArray[Any], lengths: npt.NDArray[np.int32]) -> None:
        """Append documents: their values back to back, and how many belong to each."""
        if values.dtype != self._dtype or len(values) != int(lengths.sum(dtype=np.int64)):
            raise ValueError(f"{values.dtype} [{len(values)}] does not fit the dtype or lengths")
        self._bin.write(np.ascontiguousarray(values).data)
        self._idx.write(np.ascontiguousarray(lengths, dtype="<i4").data)
        self.count += len(lengths)

    def _finish_index(self) -> None:
        file, end = self._idx, 0
        for begin in range(0, self.count, _CHUNK):
            file.seek(_HEADER.size + 4 * begin)
            lengths = np.frombuffer(file.read(4 * min(_CHUNK, self.count - begin)), dtype="<i4")
            # 64 bits: forty billion tokens of four bytes are not far away.
            ends = np.cumsum(lengths, dtype="<i8") * self._dtype.itemsize + end
            file.seek(_HEADER.size + 4 * self.count + 8 * begin)
            file.write((ends - lengths.astype("<i8") * self._dtype.itemsize).data)
            end = int(ends[-1])
        file.seek(_HEADER.size + 12 * self.count)
        for begin in range(0, self.count + 1, _CHUNK):
            stop = min(begin + _CHUNK, self.count + 1)
            file.write(np.arange(begin, stop, dtype="<i8").data)
        file.seek(0)
        file.write(_HEADER.pack(_MAGIC, 1, self._code, self.count, self.count + 1))

    def close(self) -> None:
        self._finish_index()
        self._bin.close()
        self._idx.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._bin.close()
            self._idx.close()


@dataclass(frozen=True)
class Indexed:
    """An IndexedDataset with one sequence a document, mapped read-only.

    path: of the values. values: [tokens]. lengths: int32 [documents].
    offsets: int64 [documents + 1], in elements.
    """

    path: Path
    values: npt.NDArray[Any]
    lengths: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, document: int) -> npt.NDArray[Any]:
        return self.values[self.offsets[document] : self.offsets[document + 1]]

    def load(self, begin: int, stop: int) -> npt.NDArray[Any]:
        """A copy of `values[begin:stop]`.

        For whoever goes through everything: mapped pages would count as this
        process's memory until something else needs it.
        """
        itemsize = self.values.dtype.itemsize
        with self.path.open("rb") as file:
            file.seek(begin * itemsize)
            data = file.read((stop - begin) * itemsize)
        return np.frombuffer(data, dtype=self.values.dtype)


def read(prefix: Path) -> Indexed:
    """Open the dataset `<prefix>.bin` and `.idx`.

    Raises BadInput where magic, version, dtype, counts, offsets or file sizes
    are not those of an IndexedDataset with one sequence a document.
    """
    idx = prefix.with_name(prefix.name + ".idx")
    binary = prefix.with_name(prefix.name + ".bin")
    size = idx.stat().st_size
    with idx.open("rb") as file:
        header = file.read(_HEADER.size)
    _require(idx, len(header) == _HEADER.size, lambda: f"{size} bytes are no index")
    magic, version, code, count, documents = _HEADER.unpack(header)
    _require(idx, magic == _MAGIC and version == 1, lambda: "is not a version 1 index of Megatron")
    _require(idx, code in _DTYPES, lambda: f"dtype code {code}, expected one of {set(_DTYPES)}")
    _require(idx, documents == count + 1, lambda: f"{documents} document indices, {count} + 1 due")
    _require(idx, size == 42 + 20 * count, lambda: f"{size} bytes, {count} documents need others")
    lengths: npt.NDArray[np.int32] = _map(idx, "<i4", _HEADER.size, count)
    pointers: npt.NDArray[np.int64] = _map(idx, "<i8", _HEADER.size + 4 * count, count)
    indices: npt.NDArray[np.int64] = _map(idx, "<i8", _HEADER.size + 12 * count, count + 1)
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    itemsize = _DTYPES[code].itemsize
    _require(idx, bool((lengths > 0).all()), lambda: "a document without tokens")
    _require(
        idx, np.array_equal(pointers, offsets[:-1] * itemsize), lambda: "offsets do not fit lengths"
    )
    _require(
        idx, np.array_equal(indices, np.arange(count + 1)), lambda: "documents are not 0, 1, .. n"
    )
    found, due = binary.stat().st_size, int(offsets[-1]) * itemsize
    _require(binary, found == due, lambda: f"{found} bytes, its index says {due}")
    return Indexed(binary, _map(binary, _DTYPES[code], 0, int(offsets[-1])), lengths, offsets)


def _map(path: Path, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[Any]:
    if not count:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=(count,))


def _require(path: Path, holds: bool, found: Callable[[], str]) -> None:
    if not holds:
        raise BadInput(path, f"{found()}: build the shard again")
