"""Rows of `valid_games.jsonl` and of game datasets, read and written as bytes."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from numba import njit

from gristmill.chess.kernels.attacks import borrowed
from gristmill.chess.kernels.copying import copy
from gristmill.chess.kernels.rowshape import (
    HEAD0,
    HEAD1,
    HEADERS_WORD,
    ID0,
    ID1,
    ID_WORD,
    LINE0,
    LINE1,
    LIST0,
    LIST1,
    MOVE0,
    MOVES_WORD,
    PLIES,
    PLIES_WORD,
    RES0,
    RES1,
    RESULT_WORD,
    SCHEMA_WORD,
    SOURCE_WORD,
    SRC0,
    SRC1,
    UCI0,
    UCI1,
    UNUSUAL,
    WINNER,
    WINNER_WORD,
    N,
    read_line,
)
from gristmill.run.kernels import kernel


@kernel()
def find_rows(buf, ends, records, moves, uci):
    """Find the rows in whole lines that 64 zeros follow.

    ends: the place of the newline of each line, or of the end of the last one, int64.
    records: int64 [rows, COLUMNS]. moves: packed, uint16, one a ply. uci: uint8, the
    moves of each row joined by spaces. A row in another form has UNUSUAL set and no
    moves. Returns the number of rows.
    """
    buf, records, moves, uci = borrowed(buf), borrowed(records), borrowed(moves), borrowed(uci)
    n, m, u, p = 0, 0, 0, 0
    for stop in ends:
        start, end = p, stop
        p = stop + 1
        while end > start and buf[end - 1] <= 32:
            end -= 1
        while start < end and buf[start] <= 32:
            start += 1
        if start == end:
            continue
        row = borrowed(records[n])
        good, after = read_line(buf, start, end, row, moves, m, uci, u)
        row[UNUSUAL] = 0 if good else 1
        if not good:
            row[N], row[MOVE0], row[UCI0], row[UCI1] = 0, m, u, u
        else:
            u = after
            m += row[N]
        row[LINE0], row[LINE1] = start, end
        n += 1
    return n


@kernel()
def write_games(buf, records, picked, headers, out, lengths):
    """Write the picked rows (docs/formats/chess.md#game-rows); return the bytes written.

    headers: write the tags too. lengths: int64, gets the bytes of each written row, in order.
    """
    buf, records, out = borrowed(buf), borrowed(records), borrowed(out)
    o, n = 0, 0
    for i in range(records.shape[0]):
        if not picked[i]:
            continue
        row = borrowed(records[i])
        begun = o
        o = copy(SCHEMA_WORD, 0, SCHEMA_WORD.size, out, o)
        o = copy(ID_WORD, 0, ID_WORD.size, out, o)
        o = copy(buf, row[ID0], row[ID1], out, o)
        o = _close(out, o)
        o = copy(WINNER_WORD, 0, WINNER_WORD.size, out, o)
        out[o] = row[WINNER]
        o = _close(out, o + 1)
        o = copy(RESULT_WORD, 0, RESULT_WORD.size, out, o)
        o = copy(buf, row[RES0], row[RES1], out, o)
        o = _close(out, o)
        o = copy(PLIES_WORD, 0, PLIES_WORD.size, out, o)
        o = write_number(row[PLIES], out, o)
        out[o], out[o + 1] = 44, 32
        o = copy(MOVES_WORD, 0, MOVES_WORD.size - 1, out, o + 2)
        o = copy(buf, row[LIST0], row[LIST1], out, o)
        if row[SRC0] >= 0 and row[SRC1] - row[SRC0] > 2:
            out[o], out[o + 1] = 44, 32
            o = copy(SOURCE_WORD, 0, SOURCE_WORD.size, out, o + 2)
            o = copy(buf, row[SRC0], row[SRC1], out, o)
        if headers and row[HEAD0] >= 0:
            out[o], out[o + 1] = 44, 32
            o = copy(HEADERS_WORD, 0, HEADERS_WORD.size, out, o + 2)
            o = copy(buf, row[HEAD0], row[HEAD1], out, o)
        out[o], out[o + 1] = 125, 10
        o += 2
        lengths[n] = o - begun
        n += 1
    return o


@njit(forceinline=True)
def _close(out, o):
    out[o], out[o + 1], out[o + 2] = 34, 44, 32
    return o + 3


@njit
def write_number(value, out, o):
    """Write the decimal digits of a number from 0 on; return the position after them."""
    digits, rest = 1, value
    while rest >= 10:
        rest //= 10
        digits += 1
    for k in range(digits - 1, -1, -1):
        out[o + k] = 48 + value % 10
        value //= 10
    return o + digits
