"""The header of an npy file, read without trust."""

from __future__ import annotations

from tokenize import TokenError
from typing import Any, BinaryIO, Final

import numpy as np

_MOST_ROWS: Final = 1 << 62


def read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and dtype.

    file: an open file at its first byte; afterwards at its first number.

    The header is parsed as a literal; objects are never unpickled. Raises ValueError for a
    broken header, a length below 0, and a format other than 1.0 and 2.0.
    Source: NumPy's `numpy.lib.format`.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise ValueError(f"version {version} is not 1.0 or 2.0")
    # NumPy also tokenizes a header that is no literal, which can raise all of these.
    except (TypeError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if any(type(length) is not int or not 0 <= length < _MOST_ROWS for length in shape):
        raise ValueError(f"shape {shape!r:.80}")
    return shape, fortran, dtype
