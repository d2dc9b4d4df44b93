"""Columns of strings become one column of JSON, without a Python object for each string.

The bytes are those of `json.dumps`. numba compiles the loops, and is imported with this module.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from gristmill.run.kernels import kernel

if TYPE_CHECKING:
    import pyarrow as pa

_WIDE: Final = 32
"""Bytes that are looked at together."""
_KEPT: Final = 64 << 20
"""Bytes of an array that is kept for the next call."""
_spare: Final[list[npt.NDArray[np.uint8]]] = []
_NULL: Final = np.frombuffer(b"null", dtype=np.uint8)
_QUOTES: Final = 2
_ESCAPE: Final = 6
"""Bytes of an escape as `\\u00e9`, which is the most that a byte becomes."""
_SHORT: Final = {8: b"b", 9: b"t", 10: b"n", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
"""Characters that have an escape of two bytes, and its second byte."""
_LETTERS: Final = np.zeros(256, dtype=np.uint8)
_LETTERS[list(_SHORT)] = list(b"".join(_SHORT.values()))
_HEX: Final = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_SPACE, _QUOTE, _BACKSLASH, _DELETE = b' "\\\x7f'


def joined(columns: Sequence[pa.Array], between: Sequence[str], rows: pa.Array) -> pa.Array:
    """Return a column of texts: the JSON of each value of a row, between fixed texts.

    rows: int64, numbers of the rows that are wanted, from 0.

    Raises ValueError if the result has more than 2 GiB.
    """
    import pyarrow as pa

    wanted = rows.to_numpy()
    begins = np.empty((len(wanted), len(columns)), dtype=np.int64)
    ends = np.empty_like(begins)
    octets, places = _octets([column.buffers()[2] for column in columns])
    for place, column in enumerate(columns):
        starts = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
        starts = starts.astype(np.int64)  # several columns together may have more than 2 GiB
        begins[:, place] = starts[wanted] + places[place]
        ends[:, place] = starts[wanted + 1] + places[place]
    most = _ESCAPE * int((ends - begins).sum())
    for place, column in enumerate(columns):
        if column.null_count:
            nulls = column.is_null().to_numpy(zero_copy_only=False)
            begins[nulls[wanted], place] = -1
    texts = [text.encode("ascii") for text in between]
    cuts = np.cumsum([0, *map(len, texts)])
    most += len(wanted) * (int(cuts[-1]) + len(columns) * (_QUOTES + len(_NULL)))
    out = _space(most + _WIDE)
    offsets = np.zeros(len(wanted) + 1, dtype=np.int32)
    text = np.frombuffer(b"".join(texts), np.uint8).copy()
    size = _write(octets, begins, ends, text, cuts, _LETTERS, _HEX, out, offsets)
    if size > np.iinfo(np.int32).max:
        raise ValueError(f"{size:,} bytes of JSON are too many for one column: give fewer rows")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out[:size].tobytes())]
    if len(out) <= _KEPT:
        _spare[:] = [out]
    return pa.Array.from_buffers(pa.string(), len(wanted), buffers)


def _space(size: int) -> npt.NDArray[np.uint8]:
    """Return an array of at least so many bytes: fresh memory costs more than a copy out of it."""
    try:
        space = _spare.pop()  # one thread alone gets it
    except IndexError:
        pass
    else:
        if len(space) >= size:
            return space
    # The system gives no memory for bytes that nothing is written to.
    return np.empty(size, dtype=np.uint8)


def _octets(buffers: Sequence[pa.Buffer | None]) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """The bytes of all buffers in one array with room behind, and where each buffer begins."""
    there = [buffer for buffer in buffers if buffer is not None]
    whole = there[0].parent if there else None
    if whole is not None and all(
        buffer.parent is not None
        and buffer.parent.address == whole.address
        and buffer.address + buffer.size + _WIDE <= whole.address + whole.size
        for buffer in there
    ):
        octets = np.frombuffer(whole, np.uint8)
        places = [0 if buffer is None else buffer.address - whole.address for buffer in buffers]
    else:
        values = [np.frombuffer(buffer or b"", np.uint8) for buffer in buffers]
        octets = np.concatenate([*values, np.zeros(_WIDE, np.uint8)])
        places = [0, *itertools.accumulate(map(len, values))][:-1]
    octets.flags.writeable = False
    return octets, places


def _copy_wide(typingctx, data, place, out, o):
    """Copy some bytes to another array; how many, from the first on, are in JSON what they are."""

    def codegen(context, builder, signature, args):
        source = context.make_array(signature.args[0])(context, builder, value=args[0])
        target = context.make_array(signature.args[2])(context, builder, value=args[2])
        wide = ir.VectorType(ir.IntType(8), _WIDE)

        def of(octet):
            return ir.Constant(wide, [octet] * _WIDE)

        begin = builder.gep(source.data, [args[1]])
        octets = builder.load(builder.bitcast(begin, wide.as_pointer()), align=1)
        end = builder.gep(target.data, [args[3]])
        builder.store(octets, builder.bitcast(end, wide.as_pointer()), align=1)
        # Below a space an octet wraps, so one comparison finds control characters and others.
        beyond = of(_DELETE - _SPACE)
        found = builder.icmp_unsigned(">=", builder.sub(octets, of(_SPACE)), beyond)
        for octet in (_QUOTE, _BACKSLASH):
            found = builder.or_(found, builder.icmp_unsigned("==", octets, of(octet)))
        bits = builder.bitcast(found, ir.IntType(_WIDE))
        # Without a set bit it is the number of bits.
        count = builder.cttz(bits, ir.Constant(ir.IntType(1), 0))
        return builder.zext(count, ir.IntType(64))

    return types.int64(data, types.int64, out, types.int64), codegen


def _copy(typingctx, text, start, size, out, o):
    """Copy bytes to another array."""

    def codegen(context, builder, signature, args):
        source = context.make_array(signature.args[0])(context, builder, value=args[0])
        target = context.make_array(signature.args[3])(context, builder, value=args[3])
        begin = builder.gep(source.data, [args[1]])
        place = builder.gep(target.data, [args[4]])
        cgutils.raw_memcpy(builder, place, begin, args[2], 1)
        return context.get_dummy_value()

    return types.void(text, types.int64, types.int64, out, types.int64), codegen


# Any: mypy sees an intrinsic as a function with one more argument.
copy_wide: Any = intrinsic(_copy_wide)
copy: Any = intrinsic(_copy)


@njit(forceinline=True)
def _character(data, place):
    """The code point of the character at a place, and the place after it."""
    first = np.int64(data[place])
    if first < 0x80:
        return first, place + 1
    code = first & 31
    more = 1
    if first >= 0xF0:
        code, more = first & 7, 3
    elif first >= 0xE0:
        code, more = first & 15, 2
    for at in range(place + 1, place + 1 + more):
        code = code << 6 | np.int64(data[at] & 63)
    return code, place + 1 + more


@njit(forceinline=True)
def _escape(unit, digits, out, o):
    """Write the escape of a UTF-16 unit; return its end."""
    out[o] = 92
    out[o + 1] = 117
    for digit in range(4):
        out[o + 2 + digit] = digits[(unit >> (12 - 4 * digit)) & 15]
    return o + _ESCAPE


@njit(forceinline=True)
def _write_value(data, place, end, letters, digits, out, o):
    """Write a text between quotes; return its end."""
    out[o] = 34
    o += 1
    while place < end:
        plain = min(copy_wide(data, place, out, o), end - place)
        place, o = place + plain, o + plain
        if plain == _WIDE or place == end:
            continue
        code, place = _character(data, place)
        if code < 0x80 and letters[code]:
            out[o] = 92
            out[o + 1] = letters[code]
            o += 2
            continue
        if code >= 0x10000:
            o = _escape(0xD800 + ((code - 0x10000) >> 10), digits, out, o)
            code = 0xDC00 + ((code - 0x10000) & 0x3FF)
        o = _escape(code, digits, out, o)
    out[o] = 34
    return o + 1


@kernel()
def _write(data, begins, ends, text, cuts, letters, digits, out, offsets):
    """Write the rows, and where each ends; return the size of all."""
    o = 0
    rows, columns = begins.shape
    for row in range(rows):
        for column in range(columns):
            size = cuts[column + 1] - cuts[column]
            copy(text, cuts[column], size, out, o)
            o += size
            if begins[row, column] < 0:
                for octet in _NULL:
                    out[o] = octet
                    o += 1
                continue
            begin, end = begins[row, column], ends[row, column]
            o = _write_value(data, begin, end, letters, digits, out, o)
        size = cuts[columns + 1] - cuts[columns]
        copy(text, cuts[columns], size, out, o)
        o += size
        offsets[row + 1] = o
    return o
