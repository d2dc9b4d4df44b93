"""Arrays of integers in npy files: the header is checked, the numbers are mapped.

See also `split_files.py`: which arrays a dataset has, and how they fit together.

Source: `docs/formats/puzzles.md#contract`.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.untrusted.npy_header import read_header

Integers = npt.NDArray[np.integer[Any]]

_REMEDY = "build the dataset again, or copy it again"


def mapped_integers(opened: Path, path: Path, dimensions: int) -> Integers:
    """Map an array of integers; it cannot be written to.

    opened: a path that opens the file.
    path: its real path, for messages.
    dimensions: that the array must have.

    Raises BadInput for a file that is no npy file, holds something else than integers, has
    another number of dimensions, is in Fortran order, or has another size than its header says.
    """
    with opened.open("rb") as file:
        try:
            shape, fortran, dtype = read_header(file)
        except ValueError as error:
            raise BadInput(path, f"has no npy header that can be read ({error}): {_REMEDY}") from (
                error
            )
        offset, size = file.tell(), os.fstat(file.fileno()).st_size
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if dtype.kind not in "iu" or len(shape) != dimensions or (fortran and dimensions > 1):
        order = "Fortran" if fortran else "C"
        raise BadInput(
            path,
            f"holds {dtype} {shape} in {order} order, expected integers in {dimensions}"
            f" dimensions in C order: {_REMEDY}",
        )
    count = 1
    for length in shape:
        count *= int(length)
    if size != offset + count * dtype.itemsize:
        raise BadInput(
            path,
            f"has {size} bytes, its header says {offset + count * dtype.itemsize}: {_REMEDY}",
        )
    if count == 0:
        return np.empty(shape, dtype)  # nothing cannot be mapped
    # Slices of it cost less than those of a memmap, and so does making it.
    return np.frombuffer(mapped, dtype, count, offset).reshape(shape)
