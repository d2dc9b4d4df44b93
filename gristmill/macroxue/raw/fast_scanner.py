"""The fast scanner: a buffer of step lines to rows in one compiled pass.

It takes a line only if it is sure that `strict_parser.parse_step` accepts it with the same row:
compact JSON, known strings without escapes, decimals that one float64 division gives exactly. It
stops at any other line, which the caller then gives to the strict parser.

All reads are bounded: the text ends with a newline, no token crosses a newline, and words are
loaded at most PAD bytes behind the text, which the caller provides. Importing this module loads
numba. Source: docs/formats/macroxue.md#row-rules, docs/formats/macroxue.md#number-rules.
"""

# numba infers the types here, and mypy cannot follow it.
# mypy: disable-error-code="assignment, no-any-return, return-value, untyped-decorator"

# Words are uint64 and positions int64. They never mix in one operation, because numba would make
# a float64 of it.

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gristmill.macroxue.raw.read_run import PAD
from gristmill.macroxue.rules.game import line_table
from gristmill.run.kernels import kernel

END, UNSURE, FULL = 0, 1, 2
"""Why a scan stopped: no line is left, a line is for the strict parser, all rows are filled."""

_intrinsic: Any = intrinsic
_compiled: Any = kernel(nogil=True, error_model="numpy")


@_intrinsic
def _word(_context: Any, _address: Any) -> Any:
    """The 8 bytes at an address as a little-endian word; need not be aligned."""

    def load(_cgctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1, typ=ir.IntType(64))

    return types.uint64(types.int64), load


@_intrinsic
def _byte(_context: Any, _address: Any) -> Any:
    """The byte at an address, 0..255, as int64."""

    def load(_cgctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer, align=1, typ=ir.IntType(8)), ir.IntType(64))

    return types.int64(types.int64), load


@_intrinsic
def _zeros_below(_context: Any, _word: Any) -> Any:
    """The number of zero bits below the lowest bit that is set; 64 for a word of zeros."""

    def count(_cgctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), count


def _mark(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_W = np.uint64
_KEEP4, _KEEP5 = _W((1 << 32) - 1), _W((1 << 40) - 1)
_KEEP6, _KEEP7 = _W((1 << 48) - 1), _W((1 << 56) - 1)

_SEED = _mark(b'seed":')
_STEP_A, _STEP_B = _mark(b"step_ind"), _mark(b'ex":')
_RANK_A, _RANK_B = _mark(b"max_rank"), _mark(b'":')
_MOVE = _mark(b'move":')
_TYPE_A, _TYPE_B = _mark(b"valuatio"), _mark(b'n_type":')
_VALUE_B = _mark(b'n":')
_BOARD = _mark(b'board":')
_BRANCH_A, _BRANCH_B = _mark(b"branch_e"), _mark(b'h_evs":')
_KEEP2, _KEEP3 = _W((1 << 16) - 1), _W((1 << 24) - 1)

_M_UP, _M_DOWN = _mark(b'up"'), _mark(b'down"')
_M_LEFT, _M_RIGHT = _mark(b'left"'), _mark(b'right"')
_V_SEARCH, _V_11, _V_10 = _mark(b'search"'), _mark(b'tuple11"'), _mark(b'tuple10"')
_B_UP, _B_DOWN = _mark(b'"up":'), _mark(b'"down":')
_B_LEFT, _B_RIGHT = _mark(b'"left":'), _mark(b'"right":')
_NULL, _TRUE, _FALSE = _mark(b"null"), _mark(b"true"), _mark(b"false")

_ZEROS = _mark(b"00000000")
_TO_BIT7, _BIT7 = _W(0x7676767676767676), _W(0x8080808080808080)
_TEN, _EIGHT, _SIXTEEN, _THIRTY2 = _W(10), _W(8), _W(16), _W(32)
_LANES = _W(0x000000FF000000FF)
_MUL_A, _MUL_B = _W(0x000F424000000064), _W(0x0000271000000001)

_POWERS = np.array([10.0**k for k in range(9)])
_SCALES = np.array([10**k for k in range(9)])
_MAX_EXACT = 1 << 53
_MOST_HIGH = _W(1844674407370955)


@_compiled
def _digits(at: int) -> tuple[int, int]:
    """(value, number) of the decimal digits at an address; at most 8 of them."""
    word = _word(at) ^ _ZEROS
    # A byte above 9 sets its bit 7. Its carry into the bytes above does not matter, because
    # only the first such byte counts.
    count = _zeros_below(((word + _TO_BIT7) | word) & _BIT7) >> 3
    word = word << _W(((8 - count) * 8) & 63)
    word = word * _TEN + (word >> _EIGHT)
    low = (word & _LANES) * _MUL_A
    high = ((word >> _SIXTEEN) & _LANES) * _MUL_B
    return np.int64(((low + high) >> _THIRTY2) & _KEEP4), count


@_compiled
def _integer(at: int) -> tuple[int, int]:
    """(value, address behind) of an unsigned integer of 1..16 digits; address 0 if unsure."""
    value, count = _digits(at)
    if count == 0 or (count > 1 and _byte(at) == 48):
        return 0, 0
    if count == 8:
        more, extra = _digits(at + 8)
        if extra == 8 and 48 <= _byte(at + 16) <= 57:
            return 0, 0
        value = value * _SCALES[extra] + (more if extra else 0)
        count += extra
    return value, at + count


@_compiled
def _large(at: int) -> tuple[int, int]:
    """(value as int64, address behind) of an integer of 17..20 digits below 2^64; 0 if unsure."""
    first, count = _digits(at)
    second, more = _digits(at + 8)
    if count < 8 or more < 8 or _byte(at) == 48:
        return 0, 0
    third, extra = _digits(at + 16)
    if not 1 <= extra <= 4:
        return 0, 0
    value = _W(first * _SCALES[8] + second)
    # 2^64 - 1 is 18446744073709551615.
    if extra == 4 and (value > _MOST_HIGH or (value == _MOST_HIGH and third > 1615)):
        return 0, 0
    return np.int64(value * _W(_SCALES[extra]) + _W(third)), at + 16 + extra


@_compiled
def _named(at: int, names: Any) -> tuple[int, int]:
    """(id, address behind the closing quote) of a known name that has no escape; 0 if unsure."""
    for known in range(len(names)):
        length = np.int64(names[known, 0])
        if _byte(at + length) != 34:
            continue
        same = True
        for i in range(length):
            same &= _byte(at + i) == np.int64(names[known, 2 + i])
        if same:
            return np.int64(names[known, 1]), at + length + 1
    return 0, 0


@_compiled
def _decimal(at: int) -> tuple[float, int]:
    """(value, address behind) of a number without exponent, 8 digits on either side of the dot.

    The value is exact: float64 holds the mantissa and the power of ten without rounding, so that
    the quotient is the nearest float64. Address 0 if unsure.
    """
    negative = _byte(at) == 45
    at += 1 if negative else 0
    whole, count = _digits(at)
    if count == 0 or (count > 1 and _byte(at) == 48):
        return 0.0, 0
    at += count
    after = _byte(at)
    value = np.float64(whole)
    if after == 46:
        fraction, places = _digits(at + 1)
        mantissa = whole * _SCALES[places] + fraction
        if places == 0 or mantissa > _MAX_EXACT:
            return 0.0, 0
        value = np.float64(mantissa) / _POWERS[places]
        at += places + 1
        after = _byte(at)
    if 48 <= after <= 57 or after == 101 or after == 69:
        return 0.0, 0
    return (-value if negative else value), at


@_compiled
def _string(at: int) -> int:
    """Address behind a skipped string; 0 if unsure. at: address behind its opening quote."""
    while True:
        mark = _byte(at)
        if mark == 34:
            return at + 1
        if mark < 32 or mark > 126:
            return 0
        if mark == 92:
            mark = _byte(at + 1)
            if mark == 117:
                for i in range(2, 6):
                    digit = _byte(at + i)
                    if not (48 <= digit <= 57 or 65 <= digit <= 70 or 97 <= digit <= 102):
                        return 0
                at += 6
            elif mark in (34, 92, 47, 98, 102, 110, 114, 116):
                at += 2
            else:
                return 0
        else:
            at += 1


@_compiled
def _scalar(at: int) -> int:
    """Address behind a skipped string, number or literal; 0 if unsure."""
    mark = _byte(at)
    if mark == 34:
        return _string(at + 1)
    word = _word(at)
    if word & _KEEP4 == _NULL or word & _KEEP4 == _TRUE:
        return at + 4
    if word & _KEEP5 == _FALSE:
        return at + 5
    _, behind = _decimal(at)
    return behind


@_compiled
def _value(at: int) -> int:
    """Address behind a skipped value of up to 60 levels; 0 if unsure."""
    mark = _byte(at)
    if mark != 91 and mark != 123:
        return _scalar(at)
    # One bit a level: set for an object, clear for an array.
    kinds, depth = 0, 0
    while True:
        # Here a value is expected, in an object behind its key and colon.
        mark = _byte(at)
        if mark == 91 or mark == 123:
            if depth == 60:
                return 0
            kinds = kinds * 2 + (1 if mark == 123 else 0)
            depth += 1
            at += 1
            if _byte(at) == mark + 2:
                pass
            elif mark == 123:
                at = _key(at)
                if at == 0:
                    return 0
                continue
            else:
                continue
        else:
            at = _scalar(at)
            if at == 0:
                return 0
        while True:
            mark = _byte(at)
            if mark == 44:
                at += 1
                if kinds & 1:
                    at = _key(at)
                    if at == 0:
                        return 0
                break
            if mark != (125 if kinds & 1 else 93):
                return 0
            at += 1
            kinds >>= 1
            depth -= 1
            if depth == 0:
                return at


@_compiled
def _key(at: int) -> int:
    """Address behind the colon of a skipped key inside a skipped object; 0 if unsure."""
    if _byte(at) != 34:
        return 0
    at = _string(at + 1)
    if at == 0 or _byte(at) != 58:
        return 0
    return at + 1


@_compiled
def _unknown_key(at: int) -> int:
    """Address behind the colon of an unknown key at top level; 0 if unsure.

    The caller has compared the key with all known keys; an escape could spell a known one.
    """
    while True:
        mark = _byte(at)
        if mark == 34:
            return at + 2 if _byte(at + 1) == 58 else 0
        if mark < 32 or mark > 126 or mark == 92:
            return 0
        at += 1


@_compiled
def _weigh(board: np.uint64, table: Any) -> Any:
    """Sum of the line scores of the four rows of a board whose ranks are below 16."""
    total = np.int64(0)
    for _ in range(4):
        total += table[np.int64(board & _KEEP2)]
        board = board >> _SIXTEEN
    return total


@_compiled
def _transpose(board: np.uint64) -> np.uint64:
    """Swap rows and columns of 4x4 nibbles: first inside each quarter, then the quarters."""
    swap = ((board >> _W(12)) ^ board) & _W(0x0000F0F00000F0F0)
    board = board ^ swap ^ (swap << _W(12))
    swap = ((board >> _W(24)) ^ board) & _W(0x00000000FF00FF00)
    return board ^ swap ^ (swap << _W(24))


@_compiled
def _weigh_high(ranks: Any) -> Any:
    """board_eval of 16 ranks 0..31, for boards with ranks that the table does not have."""
    total = np.int64(0)
    for line in range(8):
        first, step = (line * 4, 1) if line < 4 else (line - 4, 4)
        a = ranks[first] << ranks[first]
        total += a
        for i in range(1, 4):
            b = ranks[first + i * step] << ranks[first + i * step]
            total += a + b if a >= b else 12 * (a - b)
            total += a if a == b else 0
            a = b
    return total


@_compiled
def _scan(
    base: int,
    at: int,
    end: int,
    words: Any,
    floats: Any,
    row: int,
    room: int,
    state: Any,
    table: Any,
    names: Any,
) -> tuple[int, int, int]:
    ranks = np.empty(16, np.int64)
    run_id, next_index = state[0], state[1]
    seed_default, rank_default = state[2], state[3]
    end += base
    at += base
    stop = END
    while at < end:
        if row == room:
            stop = FULL
            break
        words[row * 6 + 4] = _W(0)
        words[row * 6 + 5] = _W(0)
        board, mask, score = _W(0), np.int64(0), np.int64(0)
        seed, rank, index = seed_default, rank_default, next_index
        move, kind, legal, seen = np.int64(-1), np.int64(0), np.int64(0), np.int64(0)
        ok = _byte(at) == 123
        p = at + 1
        while ok:
            if _byte(p) != 34:
                ok = False
                break
            word = _word(p + 1)
            if word & _KEEP6 == _SEED:
                first = p + 7
                seed, p = _integer(first)
                if p == 0:
                    seed, p = _large(first)
                ok = p != 0 and not seen & 1
                seen |= 1
            elif word == _STEP_A and _word(p + 9) & _KEEP4 == _STEP_B:
                index, p = _integer(p + 13)
                ok = p != 0 and not seen & 2 and index < 1 << 32
                seen |= 2
            elif word == _RANK_A and _word(p + 9) & _KEEP2 == _RANK_B:
                rank, p = _integer(p + 11)
                ok = p != 0 and not seen & 4 and rank < 256
                seen |= 4
            elif word & _KEEP6 == _MOVE:
                name = _word(p + 8)
                ok = not seen & 8 and _byte(p + 7) == 34
                seen |= 8
                if name & _KEEP5 == _M_LEFT:
                    move, p = 2, p + 13
                elif name & _KEEP3 == _M_UP:
                    move, p = 0, p + 11
                elif name & _KEEP6 == _M_RIGHT:
                    move, p = 3, p + 14
                elif name & _KEEP5 == _M_DOWN:
                    move, p = 1, p + 13
                else:
                    ok = False
            elif word == _TYPE_A and _word(p + 9) == _TYPE_B:
                name = _word(p + 18)
                ok = not seen & 16 and _byte(p + 17) == 34
                seen |= 16
                if name & _KEEP7 == _V_SEARCH:
                    kind, p = 0, p + 25
                elif name == _V_11:
                    kind, p = 1, p + 26
                elif name == _V_10:
                    kind, p = 2, p + 26
                else:
                    kind, p = _named(p + 18, names)
                    ok = ok and p != 0
            elif word == _TYPE_A and _word(p + 9) & _KEEP3 == _VALUE_B:
                p = _value(p + 12)
                ok = p != 0
            elif word & _KEEP7 == _BOARD:
                q = p + 9
                wrong = (seen & 32) | (_byte(p + 8) ^ 91)
                seen |= 32
                for i in range(16):
                    first = _byte(q) - 48
                    second = _byte(q + 1) - 48
                    two = np.int64(_W(second) < _TEN)
                    value = first + two * (9 * first + second)
                    separator = _byte(q + 1 + two)
                    wrong |= separator ^ (44 if i < 15 else 93)
                    wrong |= (first >> 63) | np.int64(first > 9) | (two & np.int64(first == 0))
                    # 32 and more, or a value that a wrong digit made.
                    wrong |= value & ~31
                    ranks[i] = value
                    board = (board << _W(4)) | _W(min(value, 15) & 15)
                    mask |= ((value >> 4) & 1) << i
                    q += 2 + two
                p = q
                ok = wrong == 0
            elif word == _BRANCH_A and _word(p + 6) & _KEEP7 == _BRANCH_B:
                ok = not seen & 64 and _byte(p + 13) == 123
                seen |= 64
                p += 14
                named = np.int64(0)
                while ok:
                    word = _word(p)
                    if word & _KEEP5 == _B_UP:
                        way, p = 0, p + 5
                    elif word & _KEEP7 == _B_LEFT:
                        way, p = 2, p + 7
                    elif word == _B_RIGHT:
                        way, p = 3, p + 8
                    elif word & _KEEP7 == _B_DOWN:
                        way, p = 1, p + 7
                    else:
                        ok = False
                        break
                    if named & (1 << way):
                        ok = False
                        break
                    named |= 1 << way
                    if _word(p) & _KEEP4 == _NULL:
                        p += 4
                    else:
                        number, p = _decimal(p)
                        if p == 0:
                            ok = False
                            break
                        floats[row * 12 + 8 + way] = np.float32(number)
                        legal |= 1 << way
                    mark = _byte(p)
                    p += 1
                    if mark == 125:
                        break
                    ok = mark == 44
            else:
                p = _unknown_key(p + 1)
                if p != 0:
                    p = _value(p)
                ok = p != 0
            if not ok:
                break
            mark = _byte(p)
            p += 1
            if mark == 125:
                break
            ok = mark == 44
        if not (ok and _byte(p) == 10 and seen & 40 == 40):
            stop = UNSURE
            break
        if mask == 0:
            score = _weigh(board, table) + _weigh(_transpose(board), table)
        else:
            score = _weigh_high(ranks)
            if not -(1 << 31) <= score < 1 << 31:
                stop = UNSURE
                break
        cell = row * 6
        words[cell] = _W(run_id) | (_W(index) << _THIRTY2)
        words[cell + 1] = board
        words[cell + 2] = _W(score & 0xFFFFFFFF) | _W((mask << 32) | (move << 48) | (kind << 56))
        words[cell + 3] = _W(legal | (rank << 8) | ((seed & 0xFFFFFFFF) << 32))
        row += 1
        next_index = min(index + 1, 0xFFFFFFFF)
        at = p + 1
    state[1] = next_index
    return at - base, row, stop


_TABLE = line_table()
_NO_NAMES = np.zeros((0, 34), np.uint8)


def scan(
    text: npt.NDArray[np.uint8],
    at: int,
    end: int,
    rows: npt.NDArray[np.void],
    row: int,
    state: npt.NDArray[np.int64],
    names: npt.NDArray[np.uint8] = _NO_NAMES,
) -> tuple[int, int, int]:
    """Scan the lines of text[at:end] to rows.

    text: uint8 [T], contiguous; text[end - 1] is a newline, and PAD bytes are behind `end`.
    rows: STEP_ROW_DTYPE [N], contiguous.
    state: int64 [4]: run_id, the step_index of a line without one, the low 32 bits of the seed
        in the meta, its max_rank (0 if none). The second number is updated.
    names: uint8 [M, 34], further names of valuation types without escapes: length, id, and bytes
        with zeros behind them; default none.

    Returns (position of the first line that was not taken, number of rows that are filled, END or
    UNSURE or FULL). Releases the GIL while it runs.
    """
    if not 0 <= at <= end <= len(text) - PAD or (end and text[end - 1] != 10):
        raise ValueError("text must end with a newline and have PAD bytes behind it")
    if not (text.flags.c_contiguous and rows.flags.c_contiguous and rows.dtype.itemsize == 48):
        raise ValueError("text and rows must be contiguous, rows of STEP_ROW_DTYPE")
    position, filled, stop = _scan(
        text.ctypes.data,
        at,
        end,
        rows.view(np.uint64),
        rows.view(np.float32),
        row,
        len(rows),
        state,
        _TABLE,
        names,
    )
    return position, filled, stop
