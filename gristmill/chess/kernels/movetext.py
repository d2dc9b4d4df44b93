"""The movetext of one game: each move is made on the board as it is read.

Only standard SAN is read; any other text makes the game unusual, and python-chess reads it.
Source: docs/formats/chess.md#compiled-reader
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.kernels.board import GAP, MAX_PLIES, TURN, full_key, make, may_castle, phase
from gristmill.chess.kernels.headers import NO_RESULT, OK, UNKNOWN, UNUSUAL, result_code
from gristmill.chess.kernels.moves import resolve

# Kind of piece by letter, -1 for other characters.
KIND = np.full(256, -1, dtype=np.int64)
for _kind, _letter in enumerate(b"NBRQK", 1):
    KIND[_letter] = _kind

_O, _DASH, _X, _EQUALS, _PLUS, _HASH = 79, 45, 120, 61, 43, 35
_BANG, _WHAT = 33, 63


# More codes than OK and UNUSUAL: the text ends inside the game; the arrays are full.
MORE, NO_ROOM = 2, 3

_EVENT = np.frombuffer(b"[Event ", dtype=np.uint8).copy()


@njit(forceinline=True)
def blank(buf, p, size):
    """The position after the blank line that starts at p, else -1.

    A carriage return without a line feed is not taken as a line end here.
    """
    while p < size and (buf[p] == 32 or buf[p] == 9 or buf[p] == 13):
        if buf[p] == 13 and p + 1 < size and buf[p + 1] != 10:
            return -1
        p += 1
    if p >= size:
        return size
    return p + 1 if buf[p] == 10 else -1


@njit
def skip_blank(buf, p, size):
    """The start of the first line at or after p that is not blank."""
    q = p
    while q < size:
        c = buf[q]
        if c == 10:
            p = q + 1
        elif c != 32 and c != 9 and c != 13:
            return p
        q += 1
    return size


@njit
def _begins_game(buf, p, first):
    """Whether the line at p begins with `[Event ` and follows a blank line in buf[first:p]."""
    q = p
    if buf[q] == 0xEF and buf[q + 1] == 0xBB and buf[q + 2] == 0xBF:  # a byte order mark
        q += 3
    for k in range(_EVENT.size):
        if buf[q + k] != _EVENT[k]:
            return False
    q = p - 2
    while q >= first and (buf[q] == 32 or buf[q] == 9 or buf[q] == 13):
        q -= 1
    return q >= first and buf[q] == 10


@njit
def _skip_comment(buf, p, size, current):
    """The position after the comment at p; -1 at the end of text, -2 if it is unusual."""
    first = p
    while p < size:
        c = buf[p]
        if c == 125:
            return p + 1
        if c == 13 and buf[p + 1] != 10:
            return -2
        if c == 10:
            following = buf[p + 1]
            if following == 37:
                return -2
            if current and (following == 91 or following == 0xEF):
                if _begins_game(buf, p + 1, first):
                    return -2
        p += 1
    return -1


@njit(forceinline=True)
def read_movetext(buf, p, size, at_eof, current, board, keys, moves, phases, m, limit):
    """Read movetext from p; return (code, position after it, plies, terminator).

    board: the position that the game begins at. keys: hashes of the positions; the first is there.
    current: text other than tags behind a blank line, where no result was read, is UNUSUAL, and so
    is a comment that the next game begins in.
    st[GAP] becomes 1 where the number of a move is not that of the next move.
    """
    bb, kinds, st, key = board
    st[GAP] = 0
    n, terminator, depth = 0, NO_RESULT, 0
    line_start = True
    while True:
        if line_start:
            after = blank(buf, p, size)
            if after >= 0:
                if after == size and not at_eof:
                    return MORE, p, n, terminator
                if current and terminator == NO_RESULT:
                    q = skip_blank(buf, after, size)
                    if q >= size and not at_eof:
                        return MORE, p, n, terminator
                    if q < size and (n == 0 or buf[q] != 91):
                        return UNUSUAL, p, n, terminator
                return (UNUSUAL if depth else OK), after, n, terminator
            line_start = False
            if buf[p] == 37:
                return UNUSUAL, p, n, terminator
        if p >= size:
            if not at_eof or depth:
                return (MORE if not at_eof else UNUSUAL), p, n, terminator
            return OK, p, n, terminator
        c = buf[p]
        if c == 32 or c == 9 or c == 46:  # space, tab, the dots of a move number
            p += 1
        elif c == 10:
            p += 1
            line_start = True
        elif c == 13:
            if buf[p + 1] != 10:
                return (MORE if p + 1 >= size and not at_eof else UNUSUAL), p, n, terminator
            p += 1
        elif c == 123:
            after = _skip_comment(buf, p, size, current)
            if after < 0:
                return (MORE if after == -1 and not at_eof else UNUSUAL), p, n, terminator
            p = after
        elif c == 59:  # a comment to the end of the line
            while p < size and buf[p] != 10:
                if buf[p] == 13 and buf[p + 1] != 10:
                    return (MORE if p + 1 >= size and not at_eof else UNUSUAL), p, n, terminator
                p += 1
        elif c == 40:
            if n == 0:  # a variation of no move: python-chess reads it as the main line
                return UNUSUAL, p, n, terminator
            depth += 1
            p += 1
        elif c == 41:
            if depth == 0:
                return UNUSUAL, p, n, terminator
            depth -= 1
            p += 1
        elif depth:
            p += 1
        elif c == 36:
            p += 1
            if buf[p] < 48 or buf[p] > 57:
                return (MORE if p >= size and not at_eof else UNUSUAL), p, n, terminator
            while buf[p] >= 48 and buf[p] <= 57:
                p += 1
        elif (c >= 48 and c <= 57) or c == 42:
            q = p
            while buf[q] > 32 and buf[q] != 123 and buf[q] != 46:
                q += 1
            if q >= size and not at_eof:
                return MORE, p, n, terminator
            code = result_code(buf, p, q)
            if code <= UNKNOWN:
                if terminator != NO_RESULT:
                    return UNUSUAL, p, n, terminator
                terminator = code
                p = q
            else:
                zeros, number, first = 0, 0, p
                while buf[p] >= 48 and buf[p] <= 57:
                    zeros = zeros + 1 if buf[p] == 48 else 0
                    if zeros == 4:  # a null move, also with digits next to it
                        return UNUSUAL, p, n, terminator
                    number = 10 * number + buf[p] - 48
                    p += 1
                if number != (n >> 1) + 1 or p - first > 9:
                    st[GAP] = 1
                if buf[p] != 46 and buf[p] != 32 and buf[p] != 10 and buf[p] != 13:
                    return UNUSUAL, p, n, terminator
        elif KIND[c] > 0 or c == 79 or (c >= 97 and c <= 104):
            if terminator != NO_RESULT or n >= MAX_PLIES:
                return UNUSUAL, p, n, terminator
            if size - p < 16 and not at_eof:
                return MORE, p, n, terminator
            if m + n >= limit:
                return NO_ROOM, p, n, terminator
            move, after = read_san(buf, p, bb, kinds, st)
            if move < 0:
                return UNUSUAL, p, n, terminator
            p = after
            if p >= size and not at_eof:
                return MORE, p, n, terminator
            make(bb, kinds, st, key, move)
            moves[m + n] = move
            phases[m + n] = phase(st)
            n += 1
            keys[n] = full_key(bb, kinds, st, key)
        else:
            return UNUSUAL, p, n, terminator


@njit(forceinline=True)
def _file(char):
    return char - 97 if char >= 97 and char <= 104 else -1


@njit(forceinline=True)
def _rank(char):
    return char - 49 if char >= 49 and char <= 56 else -1


@njit
def _castle(buf, p, bb, st):
    """Read the castling token at p: (move or -1, position after it)."""
    if buf[p + 1] != _DASH or buf[p + 2] != _O:
        return -1, p
    short = True
    p += 3
    if buf[p] == _DASH:
        if buf[p + 1] != _O:
            return -1, p
        short = False
        p += 2
    if not may_castle(bb, st, short):
        return -1, p
    king = 4 + 56 * st[TURN]
    return king | (king + 2 if short else king - 2) << 6, p


@njit(forceinline=True)
def _spelled(buf, p, bb, kinds, st):
    """Read the piece or pawn token at p: (move or -1, position after square and promotion)."""
    kind = KIND[buf[p]]
    if kind > 0:
        p += 1
    else:
        kind = 0
    from_file, from_rank = -1, -1
    file = _file(buf[p])
    if file >= 0:
        p += 1
        rank = _rank(buf[p])
        if rank < 0:
            from_file = file
            if buf[p] == _X:
                p += 1
            file, rank = _file(buf[p]), _rank(buf[p + 1])
            p += 2
        else:
            p += 1
            if kind and (buf[p] == _X or _file(buf[p]) >= 0):
                from_file, from_rank = file, rank
                if buf[p] == _X:
                    p += 1
                file, rank = _file(buf[p]), _rank(buf[p + 1])
                p += 2
    else:
        from_rank = _rank(buf[p])
        if kind == 0 or (from_rank < 0 and buf[p] != _X):
            return -1, p
        if from_rank >= 0:
            p += 1
        if buf[p] == _X:
            p += 1
        file, rank = _file(buf[p]), _rank(buf[p + 1])
        p += 2
    if file < 0 or rank < 0:
        return -1, p
    promotion = 0
    if buf[p] == _EQUALS:
        promotion = KIND[buf[p + 1]]
        if promotion < 1 or promotion > 4:
            return -1, p
        p += 2
    return resolve(bb, kinds, st, kind, from_file, from_rank, rank * 8 + file, promotion), p


@njit(forceinline=True)
def read_san(buf, p, bb, kinds, st):
    """The legal move at p and the position after its check and annotation signs.

    `buf` must have 16 zeros after the text. The move is -1 where the token is not
    standard, names no legal move or more than one, or has other characters after it.
    """
    if buf[p] == _O:
        move, p = _castle(buf, p, bb, st)
    else:
        move, p = _spelled(buf, p, bb, kinds, st)
    if move < 0:
        return -1, p
    if buf[p] == _PLUS or buf[p] == _HASH:
        p += 1
    while buf[p] == _BANG or buf[p] == _WHAT:
        p += 1
    c = buf[p]
    # space, tab, line ends, ( ) { ; $ and the zero after the text
    if c == 32 or c == 10 or c == 13 or c == 9 or c == 40 or c == 41:
        return move, p
    if c == 123 or c == 59 or c == 36 or c == 0:
        return move, p
    return -1, p
