"""The files of one dataset, as Megatron's IndexedDataset asks for index and values.

It imports neither torch nor Megatron.
Source: `docs/formats/synth.md#bin-file`.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.reading.folder import HeldFile

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
    """The values of one dataset, read from the file each time; `file` is the `.bin` file.

    A read that fails is repeated after each of `waits`, in seconds, as Megatron does: storage in a
    network can be away for a while.
    """

    waits = (10, 20, 40)

    def __init__(self, file: HeldFile) -> None:
        self._file, self._path = file, str(file.opened)

    def read(self, dtype: type[Any], count: int, offset: int) -> npt.NDArray[Any]:
        """Return `count` values from byte `offset` on.

        Raises BadInput if the file ends before.
        """
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
