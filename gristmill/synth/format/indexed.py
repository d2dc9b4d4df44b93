"""Megatron's IndexedDataset files: written in one pass, read as plain arrays, in constant memory.

What the numbers mean belongs elsewhere. Source: `docs/formats/synth.md#idx-file`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

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
    """An IndexedDataset with one sequence a document.

    path: of the values. index: of the index. dtype: of the values. count:
    documents. size: elements. Nothing here is as large as the dataset: a shard
    of the full run has nineteen million documents.
    """

    path: Path
    index: Path
    dtype: np.dtype[Any]
    count: int
    size: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, document: int) -> npt.NDArray[Any]:
        begin, stop = self.bounds(document, document + 1).tolist()
        return self.values[begin:stop]

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        """All values [size], mapped read-only."""
        return _map(self.path, self.dtype, 0, self.size)

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Of every document, mapped read-only; to go through all of them take `chunks`."""
        return _map(self.index, "<i4", _HEADER.size, self.count)

    def chunks(self) -> Iterator[npt.NDArray[np.int32]]:
        """The documents' lengths in order, a chunk at a time."""
        with self.index.open("rb") as file:
            for begin in range(0, self.count, _CHUNK):
                rows = min(_CHUNK, self.count - begin)
                yield _section(file, "<i4", _HEADER.size + 4 * begin, rows)

    def bounds(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """int64 [last - first + 1]: where documents first to last begin, in elements.

        The last bound is where document last - 1 ends. IndexError for documents
        that are not there.
        """
        if not 0 <= first <= last <= self.count:
            raise IndexError(f"{self.path}: documents {first} to {last} of {self.count}")
        stored = min(last + 1, self.count) - first
        with self.index.open("rb") as file:
            found = _section(file, "<i8", _HEADER.size + 4 * self.count + 8 * first, stored)
        found = found // self.dtype.itemsize
        return found if last < self.count else np.append(found, np.int64(self.size))

    def load(self, begin: int, stop: int) -> npt.NDArray[Any]:
        """A copy of `values[begin:stop]`.

        For whoever goes through everything: mapped pages would count as this
        process's memory until something else needs it.
        """
        with self.path.open("rb") as file:
            return _section(file, self.dtype, begin * self.dtype.itemsize, stop - begin)


def same_boundaries(one: Indexed, other: Indexed) -> bool:
    """Whether both have the same documents of the same lengths, compared chunk by chunk."""
    return len(one) == len(other) and all(
        np.array_equal(a, b) for a, b in zip(one.chunks(), other.chunks(), strict=True)
    )


def read(prefix: Path) -> Indexed:
    """Open the dataset `<prefix>.bin` and `.idx`; memory does not grow with it.

    Raises BadInput where a file is not there, or where magic, version, dtype,
    counts, offsets or file sizes are not those of an IndexedDataset with one
    sequence a document.
    """
    idx = prefix.with_name(prefix.name + ".idx")
    binary = prefix.with_name(prefix.name + ".bin")
    size, found = _size(idx), _size(binary)
    with idx.open("rb") as file:
        header = file.read(_HEADER.size)
        _require(idx, len(header) == _HEADER.size, lambda: f"{size} bytes are no index")
        magic, version, code, count, documents = _HEADER.unpack(header)
        version_1 = magic == _MAGIC and version == 1
        _require(idx, version_1, lambda: "is not a version 1 index of Megatron")
        _require(idx, code in _DTYPES, lambda: f"dtype code {code}, expected one of {set(_DTYPES)}")
        _require(
            idx, documents == count + 1, lambda: f"{documents} document indices, {count} + 1 due"
        )
        _require(
            idx, size == 42 + 20 * count, lambda: f"{size} bytes, {count} documents need others"
        )
        dtype = _DTYPES[code]
        end = _checked_end(file, idx, count, dtype.itemsize)
    _require(binary, found == end, lambda: f"{found} bytes, its index says {end}")
    return Indexed(binary, idx, dtype, count, end // dtype.itemsize)


def _size(path: Path) -> int:
    _require(path, path.is_file(), lambda: "there is no such file")
    return path.stat().st_size


def _checked_end(file: BinaryIO, idx: Path, count: int, itemsize: int) -> int:
    """Where the values end, in bytes, after a look at every entry of the index."""
    end = 0
    for begin in range(0, count, _CHUNK):
        rows = min(_CHUNK, count - begin)
        lengths = _section(file, "<i4", _HEADER.size + 4 * begin, rows)
        pointers = _section(file, "<i8", _HEADER.size + 4 * count + 8 * begin, rows)
        _require(idx, bool((lengths > 0).all()), lambda: "a document without tokens")
        ends = np.cumsum(lengths, dtype=np.int64) * itemsize + end
        fit = pointers[0] == end and np.array_equal(pointers[1:], ends[:-1])
        _require(idx, fit, lambda: "offsets do not fit lengths")
        end = int(ends[-1])
    for begin in range(0, count + 1, _CHUNK):
        stop = min(begin + _CHUNK, count + 1)
        indices = _section(file, "<i8", _HEADER.size + 12 * count + 8 * begin, stop - begin)
        in_order = np.array_equal(indices, np.arange(begin, stop))
        _require(idx, in_order, lambda: "documents are not 0, 1, .. n")
    return end


def _section(file: BinaryIO, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[Any]:
    file.seek(offset)
    return np.frombuffer(file.read(count * np.dtype(dtype).itemsize), dtype=dtype)


def _map(path: Path, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[Any]:
    if not count:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=(count,))


def _require(path: Path, holds: bool, found: Callable[[], str]) -> None:
    if not holds:
        raise BadInput(path, f"{found()}: build the shard again")
