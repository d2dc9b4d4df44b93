"""The parts of a row of `valid_games.jsonl` or of a game dataset."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.format.rows import GAME_SCHEMA
from gristmill.chess.kernels.replay import NULL_MOVE

# Columns of a row: byte places in the buffer, ends exclusive. SRC includes the quotes,
# HEAD the braces, LIST the brackets; ID and RES are inside the quotes.
(LINE0, LINE1, ID0, ID1, SRC0, SRC1, HEAD0, HEAD1, RES0, RES1) = range(10)
(WINNER, PLIES, LIST0, LIST1, N, MOVE0, UCI0, UCI1, UNUSUAL) = range(10, 19)
COLUMNS = 19


def word(text: str) -> np.ndarray:
    """The bytes of an ASCII text, uint8."""
    return np.frombuffer(text.encode(), np.uint8).copy()


ID_WORD = word('"game_id": "')
SCHEMA_WORD = word(f'{{"schema": "{GAME_SCHEMA}", ')
SOURCE_WORD = word('"source_file": ')
HEADERS_WORD = word('"headers": ')
RESULT_WORD = word('"result": "')
WINNER_WORD = word('"winner_side": "')
PLIES_WORD = word('"plies": ')
MOVES_WORD = word('"moves": [')
MOVES_UCI_WORD = word('"moves_uci": [')


@njit(forceinline=True)
def _at(buf, p, word):
    for k in range(word.size):
        if buf[p + k] != word[k]:
            return False
    return True


@njit
def _string_end(buf, p, end):
    """The closing quote of the JSON string whose inside begins at p; -1 if it is not ASCII."""
    while p < end:
        c = buf[p]
        if c == 34:
            return p
        if c < 32 or c > 126:
            return -1
        p += 2 if c == 92 else 1
    return -1


@njit
def _headers_end(buf, p, end):
    """The position after the object of strings that begins at p; -1 for any other value."""
    p += 1
    while p < end and buf[p] != 125:
        if buf[p] == 34:
            p = _string_end(buf, p + 1, end)
            if p < 0:
                return -1
        elif buf[p] == 123 or buf[p] == 91:
            return -1
        p += 1
    return p + 1 if p < end else -1


@njit
def _packed(buf, p, n):
    """The packed form of the UCI move buf[p:p + n]; NULL_MOVE for other text."""
    if n != 4 and n != 5:
        return NULL_MOVE
    f0, r0, f1, r1 = buf[p] - 97, buf[p + 1] - 49, buf[p + 2] - 97, buf[p + 3] - 49
    if f0 < 0 or f0 > 7 or r0 < 0 or r0 > 7 or f1 < 0 or f1 > 7 or r1 < 0 or r1 > 7:
        return NULL_MOVE
    move = (f0 + r0 * 8) | (f1 + r1 * 8) << 6
    if move & 63 == move >> 6:
        return NULL_MOVE
    if n == 5:
        c = buf[p + 4]
        kind = 1 if c == 110 else 2 if c == 98 else 3 if c == 114 else 4 if c == 113 else 0
        if kind == 0:
            return NULL_MOVE
        move |= kind << 12
    return move


@njit
def _text_bytes(buf, p):
    """Bytes of the text at p up to its closing quote; -1 if a move cannot be such a text."""
    begun = p
    while buf[p] != 34:
        if buf[p] <= 32 or buf[p] > 126 or buf[p] == 92 or p - begun > 8:
            return -1
        p += 1
    return p - begun


@njit(forceinline=True)
def _moves(buf, p, end, moves, m, uci, u):
    """Read a list of moves after its bracket: (position of `]` or -1, moves, end in uci)."""
    n = 0
    if buf[p] == 93:
        return p, 0, u
    while p < end:
        if buf[p] != 34:
            return -1, n, u
        p += 1
        if n:
            uci[u] = 32
            u += 1
        length = 4 if buf[p + 4] == 34 else 5 if buf[p + 5] == 34 else 0
        move = _packed(buf, p, length)
        if move == NULL_MOVE:
            length = _text_bytes(buf, p)
            if length < 0:
                return -1, n, u
        for k in range(length):
            uci[u + k] = buf[p + k]
        u += length
        moves[m + n] = move
        n += 1
        p += length + 1
        if buf[p] == 93:
            return p, n, u
        if buf[p] != 44 or buf[p + 1] != 32:
            return -1, n, u
        p += 2
    return -1, n, u


@njit(forceinline=True)
def _number(buf, p):
    value, digits = 0, 0
    while buf[p] >= 48 and buf[p] <= 57 and digits < 9:
        value = value * 10 + buf[p] - 48
        p += 1
        digits += 1
    return p, value, digits


@njit(forceinline=True)
def _quoted(buf, p, end, row, column):
    """Write the places of the JSON string at p to two columns; return the position after `", `."""
    close = _string_end(buf, p, end)
    if close < 0 or buf[close + 1] != 44 or buf[close + 2] != 32:
        return -1
    row[column], row[column + 1] = p, close
    return close + 3


@njit(forceinline=True)
def _tail(buf, p, end, row, moves, m, uci, u):
    """Read result and winner_side (in any order), plies, moves: (position or -1, end in uci)."""
    for _ in range(2):
        if _at(buf, p, RESULT_WORD):
            p = _quoted(buf, p + RESULT_WORD.size, end, row, RES0)
            if p < 0:
                return -1, u
        elif _at(buf, p, WINNER_WORD):
            p += WINNER_WORD.size
            row[WINNER] = buf[p]
            if buf[p + 1] != 34 or buf[p + 2] != 44 or buf[p] < 35 or buf[p] == 92:
                return -1, u
            p += 4
    if not _at(buf, p, PLIES_WORD):
        return -1, u
    p, row[PLIES], digits = _number(buf, p + PLIES_WORD.size)
    if digits == 0 or not _at(buf, p + 2, MOVES_WORD):
        return -1, u
    p += 2 + MOVES_WORD.size
    row[LIST0], row[MOVE0], row[UCI0] = p - 1, m, u
    p, row[N], u = _moves(buf, p, end, moves, m, uci, u)
    if p < 0:
        return -1, u
    row[LIST1], row[UCI1] = p + 1, u
    return p + 1, u


@njit
def read_line(buf, p, end, row, moves, m, uci, u):
    """Read one row from its brace on: (whether it is in exact form, end in uci)."""
    row[SRC0], row[HEAD0], row[RES0], row[WINNER] = -1, -1, -1, 63
    dataset = _at(buf, p, SCHEMA_WORD)
    p += SCHEMA_WORD.size if dataset else 1
    if not _at(buf, p, ID_WORD):
        return False, u
    p = _quoted(buf, p + ID_WORD.size, end, row, ID0)
    if p < 0:
        return False, u
    if not dataset:
        if not _at(buf, p, SOURCE_WORD) or buf[p + SOURCE_WORD.size] != 34:
            return False, u
        p += SOURCE_WORD.size
        close = _string_end(buf, p + 1, end)
        if close < 0 or not _at(buf, close + 3, HEADERS_WORD):
            return False, u
        row[SRC0], row[SRC1] = p, close + 1
        p = close + 3 + HEADERS_WORD.size
        row[HEAD0], row[HEAD1] = p, _headers_end(buf, p, end)
        if buf[p] != 123 or row[HEAD1] < 0:
            return False, u
        p = row[HEAD1] + 2
    p, u = _tail(buf, p, end, row, moves, m, uci, u)
    if p < 0:
        return False, u
    if not dataset and buf[p] == 44 and _at(buf, p + 2, MOVES_UCI_WORD):
        q, length = p + 1 + MOVES_UCI_WORD.size, row[LIST1] - row[LIST0]
        for k in range(length):
            if buf[q + k] != buf[row[LIST0] + k]:
                return False, u
        p = q + length
    if dataset:
        if buf[p] == 44 and _at(buf, p + 2, SOURCE_WORD) and buf[p + 2 + SOURCE_WORD.size] == 34:
            row[SRC0] = p + 2 + SOURCE_WORD.size
            p = _string_end(buf, row[SRC0] + 1, end) + 1
            row[SRC1] = p
            if p == 0:
                return False, u
        if buf[p] == 44 and _at(buf, p + 2, HEADERS_WORD) and buf[p + 2 + HEADERS_WORD.size] == 123:
            row[HEAD0] = p + 2 + HEADERS_WORD.size
            p = _headers_end(buf, row[HEAD0], end)
            row[HEAD1] = p
            if p < 0:
                return False, u
    return buf[p] == 125 and p + 1 == end, u
