"""The raw file and row of each normalised record. Source: `docs/formats/reasoning.md#origins`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.untrusted.npy_header import npy_header, read_header


class OriginsWriter:
    """Writes the origins of a split, an .npy file, whose header is written at the end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._file.write(npy_header("<i8", (0, 2)))
        self._records = 0

    def write(self, places: Sequence[int]) -> None:
        """Append origins: number of the file from 0 and row from 1, in turn."""
        self._file.write(np.array(places, "<i8").tobytes())
        self._records += len(places) // 2

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._file.write(npy_header("<i8", (self._records, 2)))


def mapped(path: Path) -> npt.NDArray[np.int64]:
    """The origins of a split, int64 [records, 2], mapped into memory.

    path: of the .npy file. Column 0: number of the file in the sorted list of the split's raw
        files, from 0; column 1: row in it, from 1.

    Raises BadInput where the file is missing, damaged, or of another type or shape.
    """
    try:
        with path.open("rb") as file:
            shape, fortran, dtype = read_header(file)
            offset, size = file.tell(), os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error}): build the partition again") from error
    if dtype != np.dtype("<i8") or fortran or len(shape) != 2 or shape[1] != 2:
        raise BadInput(path, f"{dtype} {list(shape)}, expected int64 [records, 2]")
    if size != offset + 16 * shape[0]:
        rule = f"has {size} bytes, its header says {offset + 16 * shape[0]}"
        raise BadInput(path, f"{rule}: build the partition again")
    if shape[0] == 0:
        return np.empty(shape, np.int64)  # nothing cannot be mapped
    return np.memmap(path, np.int64, "r", offset, shape)
