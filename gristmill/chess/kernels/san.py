"""One SAN token in PGN text: where it ends and which legal move it names.

Only standard SAN is read (`Nbxd7+!?`, `exd6`, `e8=Q#`, `O-O-O`); python-chess reads
any other form.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.kernels.board import TURN, may_castle
from gristmill.chess.kernels.moves import resolve

# Kind of piece by letter, -1 for other characters.
KIND = np.full(256, -1, dtype=np.int64)
for _kind, _letter in enumerate(b"NBRQK", 1):
    KIND[_letter] = _kind

_O, _DASH, _X, _EQUALS, _PLUS, _HASH = 79, 45, 120, 61, 43, 35
_BANG, _WHAT = 33, 63


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
