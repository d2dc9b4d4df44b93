"""The position: its arrays, setting it up, making moves, king safety, castling, hash and phase.

A position is four arrays that the caller owns:
    bb (uint64[8])    white, black, pawns, knights, bishops, rooks, queens, kings
    kinds (int8[64])  kind of piece on a square (0 pawn .. 5 king), -1 if empty
    st (int64[8])     turn (0 white), castling rights, en-passant square or -1,
                      halfmove clock, non-pawn material, queens on the board, ply, and
                      whether a number of the movetext is not that of its move
    key (uint64[1])   Zobrist hash, without the en-passant term
A move is from | to << 6 | promotion << 12 (0 none, 1 knight .. 4 queen).
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.kernels.attacks import attacked, count, lowest
from gristmill.chess.kernels.tables import (
    BIT,
    KEEP_RIGHTS,
    PAWN,
    START_BOARDS,
    START_HASH,
    START_KINDS,
    U64,
    WEIGHT,
    Z_EP,
    Z_PIECE,
    Z_RIGHTS,
    Z_TURN,
)

MAX_PLIES = 2000
"""Of a game that a kernel reads."""
TURN, RIGHTS, EP, CLOCK, MATERIAL, QUEENS, PLY, GAP = range(8)

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
def in_check(bb, st):
    """Whether the side to move is in check."""
    turn = st[TURN]
    return attacked(bb, lowest(bb[7] & bb[turn]), 1 - turn, bb[0] | bb[1], U64(0))


@njit(forceinline=True)
def leaves_king_safe(bb, kinds, st, origin, target):
    """Whether a move that is legal but for checks (no castling) keeps the own king out of check."""
    turn = st[TURN]
    gone = BIT[target]
    occupied = ((bb[0] | bb[1]) & ~BIT[origin]) | BIT[target]
    if kinds[origin] == 0 and target == st[EP]:
        taken = BIT[target - 8 if turn == 0 else target + 8]
        gone |= taken
        occupied &= ~taken
    king = target if kinds[origin] == 5 else lowest(bb[7] & bb[turn])
    return not attacked(bb, king, 1 - turn, occupied, gone)


@njit
def may_castle(bb, st, short):
    """Whether the side to move may castle now: rights, free squares, no attack on the way."""
    turn = st[TURN]
    king = 4 + 56 * turn
    if not st[RIGHTS] & ((1 if short else 2) << (2 * turn)):
        return False
    occupied = bb[0] | bb[1]
    free = (
        (BIT[king + 1] | BIT[king + 2])
        if short
        else (BIT[king - 1] | BIT[king - 2] | BIT[king - 3])
    )
    if occupied & free:
        return False
    step = 1 if short else -1
    for away in range(3):
        if attacked(bb, king + step * away, 1 - turn, occupied, U64(0)):
            return False
    return True


@njit
def reset(bb, kinds, st, key):
    """Set up the start position."""
    for i in range(8):
        bb[i] = START_BOARDS[i]
        st[i] = 0
    for i in range(64):
        kinds[i] = START_KINDS[i]
    st[RIGHTS], st[EP], st[MATERIAL], st[QUEENS] = 15, -1, 62, 2
    key[0] = START_HASH


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
def set_up_fen(buf, p, end, bb, kinds, st):
    """Set up the position of the FEN buf[p:end]; False where python-chess must read it.

    A game that begins there is rejected all the same; its moves are read for its id. The common
    form of a FEN: docs/formats/chess.md#compiled-reader

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


@njit(forceinline=True)
def _move_piece(bb, kinds, key, turn, kind, origin, target):
    both = BIT[origin] | BIT[target]
    bb[turn] ^= both
    bb[2 + kind] ^= both
    kinds[origin] = -1
    kinds[target] = kind
    key[0] ^= Z_PIECE[turn, kind, origin] ^ Z_PIECE[turn, kind, target]


@njit(forceinline=True)
def make(bb, kinds, st, key, move):
    """Make a legal move. Castling is the king's move of two squares."""
    turn = st[TURN]
    origin, target, promotion = move & 63, (move >> 6) & 63, move >> 12
    kind = kinds[origin]
    captured, at = kinds[target], target
    if kind == 0 and target == st[EP]:
        captured, at = 0, (target - 8 if turn == 0 else target + 8)
    st[CLOCK] += 1
    if kind == 0 or captured >= 0:
        st[CLOCK] = 0
    if captured >= 0:
        bb[1 - turn] ^= BIT[at]
        bb[2 + captured] ^= BIT[at]
        kinds[at] = -1
        key[0] ^= Z_PIECE[1 - turn, captured, at]
        st[MATERIAL] -= WEIGHT[captured]
        st[QUEENS] -= captured == 4
    _move_piece(bb, kinds, key, turn, kind, origin, target)
    st[EP] = -1
    if kind == 0:
        if promotion:
            bb[2] ^= BIT[target]
            bb[2 + promotion] ^= BIT[target]
            kinds[target] = promotion
            key[0] ^= Z_PIECE[turn, 0, target] ^ Z_PIECE[turn, promotion, target]
            st[MATERIAL] += WEIGHT[promotion]
            st[QUEENS] += promotion == 4
        elif abs(target - origin) == 16:
            st[EP] = (origin + target) >> 1
    elif kind == 5 and abs(target - origin) == 2:
        if target > origin:
            _move_piece(bb, kinds, key, turn, 3, target + 1, target - 1)
        else:
            _move_piece(bb, kinds, key, turn, 3, target - 2, target + 1)
    rights = st[RIGHTS] & KEEP_RIGHTS[origin] & KEEP_RIGHTS[target]
    if rights != st[RIGHTS]:
        key[0] ^= Z_RIGHTS[st[RIGHTS]] ^ Z_RIGHTS[rights]
        st[RIGHTS] = rights
    key[0] ^= Z_TURN
    st[TURN] = 1 - turn
    st[PLY] += 1


@njit(forceinline=True)
def full_key(bb, kinds, st, key):
    """The hash of the position, with the en-passant file where such a capture is legal.

    For repetition, two positions are the same if and only if pieces, turn, castling
    rights and legal en-passant captures are the same.
    """
    if st[EP] >= 0:
        pawns = PAWN[1 - st[TURN], st[EP]] & bb[2] & bb[st[TURN]]
        while pawns:
            origin = lowest(pawns)
            pawns &= pawns - U64(1)
            if leaves_king_safe(bb, kinds, st, origin, st[EP]):
                return key[0] ^ Z_EP[st[EP] & 7]
    return key[0]


@njit(forceinline=True)
def phase(st):
    """Phase code (docs/formats/chess.md#phase-codes): 1 opening, 2 middlegame, 3 or 7 endgame.

    The low two bits are the phase id; bit 2 marks the reason `queens_off_low_material`.
    """
    if st[MATERIAL] <= 14:
        return 3
    if st[QUEENS] == 0 and st[MATERIAL] <= 20:
        return 7
    if st[PLY] <= 20 and st[RIGHTS]:
        return 1
    return 2


def new_board() -> tuple[np.ndarray, ...]:
    """The arrays of a position (see above), and one for the hashes of a game's positions."""
    return (
        np.zeros(8, np.uint64),
        np.zeros(64, np.int8),
        np.zeros(8, np.int64),
        np.zeros(1, np.uint64),
        np.zeros(MAX_PLIES + 2, np.uint64),
    )
