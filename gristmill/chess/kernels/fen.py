"""The position of a FEN, where it is one of standard chess in common form.

A game that begins at it is rejected all the same; its moves are read for its id. python-chess
reads any other FEN, as one without a king, or with castling rights of Chess960.
Rules: docs/formats/chess.md#compiled-reader
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.kernels.attacks import attacked, count, lowest
from gristmill.chess.kernels.board import CLOCK, EP, MATERIAL, PLY, QUEENS, RIGHTS, TURN
from gristmill.chess.kernels.tables import BIT, U64

# By letter: the kind of a white piece, 8 more for a black one; -1 for other characters.
_PIECE = np.full(256, -1, np.int64)
for _kind, _letter in enumerate(b"PNBRQK"):
    _PIECE[_letter], _PIECE[_letter + 32] = _kind, _kind + 8
_RIGHTS = np.frombuffer(b"KQkq", np.uint8).copy()
_ROOKS = np.array([7, 0, 63, 56])
_EDGES = U64(0xFF000000000000FF)
# A game from the start position is judged like one without FEN.
_START = np.frombuffer(b"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -", np.uint8).copy()


@njit
def _begins_at_start(buf, p, end):
    if end - p < _START.size:
        return False
    for k in range(_START.size):
        if buf[p + k] != _START[k]:
            return False
    return True


@njit
def _place(buf, p, end, bb, kinds):
    """Place the pieces of the field at p: the position after it, -1 if it is unusual."""
    bb[:] = U64(0)
    kinds[:] = -1
    rank, file, digit = 7, 0, False
    while p < end and buf[p] != 32:
        c = buf[p]
        if c == 47:
            if file != 8 or rank == 0:
                return -1
            rank, file, digit = rank - 1, 0, False
        elif c >= 49 and c <= 56 and not digit:
            file, digit = file + c - 48, True
        elif _PIECE[c] >= 0 and file < 8:
            square, colour, kind = rank * 8 + file, _PIECE[c] >> 3, _PIECE[c] & 7
            bb[colour] |= BIT[square]
            bb[2 + kind] |= BIT[square]
            kinds[square] = kind
            file, digit = file + 1, False
        else:
            return -1
        p += 1
    if rank != 0 or file != 8 or bb[2] & _EDGES:
        return -1
    return p if count(bb[7] & bb[0]) == 1 and count(bb[7] & bb[1]) == 1 else -1


@njit
def _read_rights(buf, p, bb, kinds, st):
    """Read the castling rights at p: the position after them, -1 if they are unusual."""
    if buf[p] == 45:
        return p + 1
    for i in range(4):
        if buf[p] == _RIGHTS[i]:
            rook, king, own = _ROOKS[i], 4 + 56 * (i >> 1), bb[i >> 1]
            if kinds[rook] != 3 or kinds[king] != 5 or not own & BIT[rook] or not own & BIT[king]:
                return -1
            st[RIGHTS] |= 1 << i
            p += 1
    return p if st[RIGHTS] else -1


@njit
def _read_passed(buf, p, bb, kinds, st):
    """Read the en-passant square at p: the position after it, -1 if it is unusual."""
    if buf[p] == 45:
        return p + 1
    turn = st[TURN]
    square = (40 - 24 * turn) + buf[p] - 97
    step = 8 - 16 * turn
    if buf[p] < 97 or buf[p] > 104 or buf[p + 1] != 54 - 3 * turn:
        return -1
    if kinds[square] >= 0 or kinds[square + step] >= 0:
        return -1
    if kinds[square - step] != 0 or not bb[1 - turn] & BIT[square - step]:
        return -1
    st[EP] = square
    return p + 2


@njit
def _read_number(buf, p):
    """The position after a space and one to four digits at p, -1 where they are not there."""
    first = p + 1
    p = first
    while p - first < 4 and buf[p] >= 48 and buf[p] <= 57:
        p += 1
    return p if buf[first - 1] == 32 and p > first else -1


@njit
def set_up(buf, p, end, bb, kinds, st):
    """Set up the position of the FEN buf[p:end]; False where python-chess must read it.

    The hash, the halfmove clock, the material and the ply are not set: they decide on verdicts
    and phases alone, which a rejected game does not have.
    """
    if _begins_at_start(buf, p, end):
        return False
    p = _place(buf, p, end, bb, kinds)
    if p < 0 or end - p < 6 or buf[p] != 32 or buf[p + 2] != 32:
        return False
    if buf[p + 1] != 119 and buf[p + 1] != 98:
        return False
    st[TURN] = 1 if buf[p + 1] == 98 else 0
    st[RIGHTS], st[EP], st[CLOCK], st[MATERIAL], st[QUEENS], st[PLY] = 0, -1, 0, 0, 0, 0
    p = _read_rights(buf, p + 3, bb, kinds, st)
    if p < 0 or buf[p] != 32:
        return False
    p = _read_passed(buf, p + 1, bb, kinds, st)
    if p >= 0 and p < end:
        p = _read_number(buf, p)
        p = _read_number(buf, p) if p >= 0 else -1
    king = lowest(bb[7] & bb[1 - st[TURN]])
    return p == end and not attacked(bb, king, st[TURN], bb[0] | bb[1], U64(0))
