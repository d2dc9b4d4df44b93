"""The header of an npy file: read without trust, and written as NumPy does."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Sequence
from tokenize import TokenError
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

_MOST_ROWS: Final = 1 << 62
_MOST_BYTES: Final = 10_000
"""Of a header, as NumPy reads it without being asked for more."""
_LENGTH_BYTES: Final = {(1, 0): 2, (2, 0): 4}
_TYPE: Final = re.compile(r"[<>|=]?[?biufcSUVO][0-9]{0,9}")
"""Types that NumPy writes, but for times: of some texts for those it ends the process."""
_LONG: Final = re.compile(r"\b([0-9]+)L\b")
"""How Python 2 wrote some integers."""


def npy_header(dtype: npt.DTypeLike, shape: Sequence[int]) -> bytes:
    """The header of an array in C order, of version 1.0, as NumPy writes it.

    Its length does not depend on the first number of `shape`: a writer can fill it in at the end.
    """
    header = io.BytesIO()
    described = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": tuple(shape),
    }
    np.lib.format.write_array_header_1_0(header, described)
    return header.getvalue()


def read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and dtype.

    The header is parsed as a literal; objects are never unpickled. Raises ValueError for a
    broken header, a type of times, a length below 0, and a format other than 1.0 and 2.0.
    The form is that of NumPy's `numpy.lib.format`.
    """
    version = np.lib.format.read_magic(file)
    if version not in _LENGTH_BYTES:
        raise ValueError(f"version {version} is not 1.0 or 2.0")
    field = _LENGTH_BYTES[version]
    size = int.from_bytes(file.read(field), "little")
    if size > _MOST_BYTES:
        raise ValueError(f"a header of {size:,} bytes")
    try:
        header = _proved(file.read(size).decode("latin-1")).encode("latin-1")
        whole = io.BytesIO(len(header).to_bytes(field, "little") + header)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(whole)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(whole)
    # NumPy also tokenizes a header that is no literal, which can raise all of these.
    except (TypeError, LookupError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if any(type(length) is not int or not 0 <= length < _MOST_ROWS for length in shape):
        raise ValueError(f"shape {shape!r:.80}")
    return shape, fortran, dtype


def _proved(text: str) -> str:
    """Returns a header whose types NumPy wrote, with the integers of Python 2 as those of today."""
    try:
        header = ast.literal_eval(text.strip())
    except SyntaxError:
        text = _LONG.sub(r"\1", text)
        header = ast.literal_eval(text.strip())
    if not isinstance(header, dict):
        raise ValueError("no dictionary")
    _look_at_type(header.get("descr"))
    return text


def _look_at_type(descr: object) -> None:
    if isinstance(descr, list):
        for entry in descr:
            if not isinstance(entry, tuple) or len(entry) not in (2, 3):
                raise ValueError(f"field {entry!r:.80}")
            _look_at_type(entry[1])
    elif not isinstance(descr, str) or not _TYPE.fullmatch(descr):
        raise ValueError(f"dtype {descr!r:.80}")
