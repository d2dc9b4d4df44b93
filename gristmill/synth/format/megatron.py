"""Megatron's IndexedDataset files: written and read in constant memory, checked for alignment.

It imports neither torch nor Megatron.
Source: `docs/formats/synth.md#idx-file`, `docs/formats/synth.md#alignment-check`.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import numpy as np
import numpy.typing as npt

from gristmill import provenance
from gristmill.contract import BadInput, FileNote, GristmillError
from gristmill.hashing import HashedFile, sha256_file
from gristmill.reading.folder import HeldFile

_MAGIC: Final = b"MMIDIDX\x00\x00"
_HEADER: Final = struct.Struct("<9sQBQQ")
_CODES: Final[dict[np.dtype[Any], int]] = {np.dtype("u1"): 1, np.dtype("<i4"): 4}
_DTYPES: Final[dict[int, np.dtype[Any]]] = {code: dtype for dtype, code in _CODES.items()}
_BATCH: Final = 1 << 16
"""Number of documents whose index entries are in memory at once."""


class IndexedWriter:
    """Writes `<prefix>.bin` and `<prefix>.idx` in constant memory, one sequence a document.

    prefix: path of both files without suffix. Its folder is made if it is missing.
    dtype: of the values, int32 or uint8.

    Use it as a context manager. The files are complete after an exit without an
    error. Raises FileExistsError if one of the files exists, KeyError for another
    dtype.
    """

    def __init__(self, prefix: Path, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._code = _CODES[self._dtype]
        self.count = 0
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self._bin = HashedFile(prefix.with_name(prefix.name + ".bin"))
        # The index begins with the lengths, so each length can be written at once.
        self._idx = prefix.with_name(prefix.name + ".idx").open("xb+")
        self._idx.write(bytes(_HEADER.size))

    def add(self, values: npt.NDArray[Any], lengths: npt.NDArray[np.int32]) -> None:
        """Append documents.

        values: [N] of the dtype of this writer, all documents back to back.
        lengths: int32 [D], number of values in each document; their sum is N.

        Raises ValueError for another dtype or sum.
        """
        if values.dtype != self._dtype or len(values) != int(lengths.sum(dtype=np.int64)):
            raise ValueError(
                f"{values.dtype} [{len(values)}] does not fit {self._dtype} and the lengths"
            )
        self._bin.write(np.ascontiguousarray(values).data)
        self._idx.write(np.ascontiguousarray(lengths, dtype="<i4").data)
        self.count += len(lengths)

    def note(self) -> FileNote:
        """Return the note of the `.bin` file, with its sha256; call it after the last document."""
        return FileNote(rows=self.count, sha256=self._bin.sha256, bytes=self._bin.bytes)

    def _finish_index(self) -> None:
        file, end = self._idx, 0
        for begin in range(0, self.count, _BATCH):
            rows = min(_BATCH, self.count - begin)
            lengths = _read_at(file, "<i4", _HEADER.size + 4 * begin, rows)
            # 64 bits: a shard of the full run has more than 4 GiB of tokens.
            ends = np.cumsum(lengths, dtype="<i8") * self._dtype.itemsize + end
            file.seek(_HEADER.size + 4 * self.count + 8 * begin)
            file.write((ends - lengths.astype("<i8") * self._dtype.itemsize).data)
            end = int(ends[-1])
        file.seek(_HEADER.size + 12 * self.count)
        for begin in range(0, self.count + 1, _BATCH):
            stop = min(begin + _BATCH, self.count + 1)
            file.write(np.arange(begin, stop, dtype="<i8").data)
        file.seek(0)
        file.write(_HEADER.pack(_MAGIC, 1, self._code, self.count, self.count + 1))

    def close(self) -> None:
        """Write the rest of the index and close both files."""
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
    """An IndexedDataset with one sequence a document."""

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
        """All values, [size], mapped read-only."""
        return _map(self.path, self.dtype, 0, self.size)

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Lengths of all documents, int32 [count], mapped read-only.

        `length_batches` reads all of them without keeping their pages in memory.
        """
        return _map(self.index, "<i4", _HEADER.size, self.count)

    def length_batches(self) -> Iterator[npt.NDArray[np.int32]]:
        """Yield the lengths of the documents in order, int32, a batch of documents at a time."""
        with self.index.open("rb") as file:
            for begin in range(0, self.count, _BATCH):
                rows = min(_BATCH, self.count - begin)
                yield _read_at(file, "<i4", _HEADER.size + 4 * begin, rows)

    def bounds(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Return where documents begin, and the last of them ends: int64 [last - first + 1].

        last: number after the last document. Raises IndexError if one of them does not exist.
        """
        if not 0 <= first <= last <= self.count:
            raise IndexError(f"{self.path}: documents {first} to {last} of {self.count}")
        stored = min(last + 1, self.count) - first
        with self.index.open("rb") as file:
            offsets = _read_at(file, "<i8", _HEADER.size + 4 * self.count + 8 * first, stored)
        begins = offsets // self.dtype.itemsize
        return begins if last < self.count else np.append(begins, np.int64(self.size))

    def load(self, begin: int, stop: int) -> npt.NDArray[Any]:
        """Return a copy of `values[begin:stop]`, whose pages this process does not keep."""
        with self.path.open("rb") as file:
            return _read_at(file, self.dtype, begin * self.dtype.itemsize, stop - begin)


def same_boundaries(one: Indexed, other: Indexed) -> bool:
    """Return whether two datasets have the same number of documents, of the same lengths."""
    return len(one) == len(other) and all(
        np.array_equal(a, b)
        for a, b in zip(one.length_batches(), other.length_batches(), strict=True)
    )


def read(prefix: Path) -> Indexed:
    """Open the dataset `<prefix>.bin` and `<prefix>.idx` and check its whole index.

    Memory does not grow with the dataset. Raises BadInput if a file is missing,
    or if magic, version, dtype, counts, offsets or file sizes are not those of an
    IndexedDataset with one sequence a document.
    """
    found = opened(prefix)
    with found.index.open("rb") as file:
        end = _checked_end(file, found.index, found.count, found.dtype.itemsize)
    size = _size(found.path)
    _require(found.path, size == end, lambda: f"{size} bytes, its index says {end}")
    return found


def opened(prefix: Path) -> Indexed:
    """Open as `read`, but check no entry of the index: for a few documents that are compared."""
    idx = prefix.with_name(prefix.name + ".idx")
    binary = prefix.with_name(prefix.name + ".bin")
    size, values = _size(idx), _size(binary)
    with idx.open("rb") as file:
        header = file.read(_HEADER.size)
    _require(idx, len(header) == _HEADER.size, lambda: f"{size} bytes are too few for an index")
    magic, version, code, count, documents = _HEADER.unpack(header)
    version_1 = magic == _MAGIC and version == 1
    _require(idx, version_1, lambda: "is not a version 1 index of Megatron")
    _require(idx, code in _DTYPES, lambda: f"dtype code {code}, expected one of {set(_DTYPES)}")
    _require(idx, documents == count + 1, lambda: f"{documents} document indices, not {count} + 1")
    _require(idx, size == 42 + 20 * count, lambda: f"{size} bytes, not 42 + 20 * {count}")
    dtype = _DTYPES[code]
    return Indexed(binary, idx, dtype, count, values // dtype.itemsize)


def _size(path: Path) -> int:
    _require(path, path.is_file(), lambda: "the file is missing")
    return path.stat().st_size


def _checked_end(file: BinaryIO, idx: Path, count: int, itemsize: int) -> int:
    """Check every entry of the index; return where the values end, in bytes."""
    end = 0
    for begin in range(0, count, _BATCH):
        rows = min(_BATCH, count - begin)
        lengths = _read_at(file, "<i4", _HEADER.size + 4 * begin, rows)
        pointers = _read_at(file, "<i8", _HEADER.size + 4 * count + 8 * begin, rows)
        _require(idx, bool((lengths > 0).all()), lambda: "a document is empty")
        ends = np.cumsum(lengths, dtype=np.int64) * itemsize + end
        fit = pointers[0] == end and np.array_equal(pointers[1:], ends[:-1])
        _require(idx, fit, lambda: "offsets are not the sums of the lengths")
        end = int(ends[-1])
    for begin in range(0, count + 1, _BATCH):
        stop = min(begin + _BATCH, count + 1)
        indices = _read_at(file, "<i8", _HEADER.size + 12 * count + 8 * begin, stop - begin)
        in_order = np.array_equal(indices, np.arange(begin, stop))
        _require(idx, in_order, lambda: "document indices are not 0, 1, .., n")
    return end


def _read_at(file: BinaryIO, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[Any]:
    file.seek(offset)
    return np.frombuffer(file.read(count * np.dtype(dtype).itemsize), dtype=dtype)


def _map(path: Path, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[Any]:
    if not count:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=(count,))


def _require(path: Path, holds: bool, rule: Callable[[], str]) -> None:
    if not holds:
        raise BadInput(path, f"{rule()}: build the shard again")


DTYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "tokens": np.dtype("<i4"),
    "lossmask": np.dtype("u1"),
    "span": np.dtype("u1"),
}
"""The three datasets of a shard, by suffix: `docs/formats/synth.md#data-types`."""


def sibling(tokens: Path, name: str) -> Path:
    """Return the prefix of another dataset of the same shard and split."""
    return tokens.with_name(f"{tokens.name.removesuffix('_tokens')}_{name}")


def digest(tokens: Path) -> str:
    """Compare a shard's three datasets with each other and with their record; return their digest.

    tokens: prefix of the tokens dataset, without `.bin`; no values are read.

    It is the record's data version, else the sha256 of the three index files. Raises RuntimeError
    if counts, lengths, document indices, dtypes, file sizes or recorded digests differ.
    """
    try:
        datasets = {name: read(sibling(tokens, name)) for name in DTYPES}
        record = _record(tokens)
    except (GristmillError, OSError) as error:
        raise RuntimeError(f"{tokens}: the dataset is not complete: {error}") from error
    for _, rule in misaligned(datasets):
        raise RuntimeError(f"{tokens}: {rule}")
    hashes = {}
    for prefix in (sibling(tokens, name) for name in DTYPES):
        index = prefix.with_name(f"{prefix.name}.idx")
        hashes[f"{tokens.parent.name}/{index.name}"] = sha256_file(index)
    if record is None:
        return hashlib.sha256("".join(hashes.values()).encode()).hexdigest()
    if record.digest != record.computed_digest():
        raise RuntimeError(f"{tokens}: its provenance record was changed after it was written")
    outputs = {output.path: output for output in record.outputs}
    for path, sha256 in hashes.items():
        if path not in outputs or outputs[path].sha256 != sha256:
            raise RuntimeError(f"{tokens}: {path} is not the file in its provenance record")
        binary = path.removesuffix(".idx") + ".bin"
        size = (tokens.parent.parent / binary).stat().st_size
        if binary not in outputs or outputs[binary].bytes != size:
            raise RuntimeError(
                f"{tokens}: {binary} has {size} bytes, its provenance record has another size"
            )
    return record.data_version


def misaligned(three: Mapping[str, Indexed]) -> Iterator[tuple[str, str]]:
    """Yield the law and the words for each dataset of another type or with other documents."""
    for name, dtype in DTYPES.items():
        if three[name].dtype != dtype:
            yield "dtypes", f"{name} is {three[name].dtype}, not {dtype}"
        if not same_boundaries(three[name], three["tokens"]):
            yield "equal boundaries", f"documents of {name} and tokens differ in number or length"


def cache_folder(tokens: Path) -> Path:
    """Return the folder for index caches of this dataset, outside of the published artifact.

    The folder is in the `cache` folder of the data root, which the provenance
    record determines. Without a record, or if the dataset is not where its record
    says, the folder is in `cache` beside the dataset.
    """
    dataset = tokens.absolute().parent.parent
    inside = Path("synth") / dataset.name / tokens.parent.name / tokens.name
    if (record := _record(tokens)) is not None:
        depth = len(Path(record.artifact).parts)
        root = dataset.parents[depth - 1]
        if root / record.artifact == dataset:
            return root / "cache" / inside
    return dataset.parent / "cache" / inside


def _record(tokens: Path) -> provenance.Record | None:
    """The provenance record of the shard, if the dataset has one."""
    number = re.fullmatch(r"shard_(\d+)_tokens", tokens.name)
    if number is None:
        return None
    path = provenance.record_path(tokens.parent.parent, number[1], shared=True)
    return provenance.read_record(path) if path.exists() else None


_IDX_HEADER, _IDX_BYTES, _IDX_BYTES_A_DOCUMENT = 34, 42, 20
"""Bytes of the header of an index, of an index without documents, and of one document in it."""


class Index:
    """The index of one dataset, as IndexedDataset asks it: one sequence a document."""

    sequence_modes = None

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype.type
        size = path.stat().st_size
        self.sequence_count = (size - _IDX_BYTES) // _IDX_BYTES_A_DOCUMENT
        self.document_count = self.sequence_count + 1
        content = np.memmap(path, np.uint8, "r").data
        begin, arrays = _IDX_HEADER, []
        for kind, count in (("<i4", 0), ("<i8", 0), ("<i8", 1)):
            array = np.frombuffer(content, kind, self.sequence_count + count, begin)
            arrays.append(array)
            begin += array.nbytes
        self.sequence_lengths, self.sequence_pointers, self.document_indices = arrays

    def __len__(self) -> int:
        return self.sequence_count

    def __getitem__(self, document: int) -> tuple[np.int64, np.int32, None]:
        return self.sequence_pointers[document], self.sequence_lengths[document], None


class MappedValues:
    """The values of one dataset, mapped into memory; `path` opens the `.bin` file."""

    def __init__(self, path: Path) -> None:
        self._content = np.memmap(path, np.uint8, "r").data

    def read(self, dtype: type[Any], count: int, offset: int) -> npt.NDArray[Any]:
        """Return `count` values from byte `offset` on."""
        return np.frombuffer(self._content, dtype, count, offset)


class UnmappedValues:
    """The values of one dataset, read from the file each time; `file` is the `.bin` file."""

    waits = (10, 20, 40)

    def __init__(self, file: HeldFile) -> None:
        self._file, self._path = file, str(file.opened)

    def read(self, dtype: type[Any], count: int, offset: int) -> npt.NDArray[Any]:
        """Return `count` values from byte `offset` on. Raises BadInput if the file ends before."""
        values = np.empty(count, dtype)
        for wait in self.waits:
            try:
                return self._fill(values, offset)
            except OSError:
                time.sleep(wait)
        return self._fill(values, offset)

    def _fill(self, values: npt.NDArray[Any], offset: int) -> npt.NDArray[Any]:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            filled = os.preadv(descriptor, [values.data], offset)
        finally:
            os.close(descriptor)
        if filled != values.nbytes:
            raise BadInput(self._file.path, "ends before its index says: build the shard again")
        return values
