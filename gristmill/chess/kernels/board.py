"""The position: its arrays, making moves, king safety, castling, hash and phase.

A position is four arrays that the caller owns:
    bb (uint64[8])    white, black, pawns, knights, bishops, rooks, queens, kings
    kinds (int8[64])  kind of piece on a square (0 pawn .. 5 king), -1 if empty
    st (int64[8])     turn (0 white), castling rights, en-passant square or -1,
                      halfmove clock, non-pawn material, queens on the board, ply, unused
    key (uint64[1])   Zobrist hash, without the en-passant term
A move is from | to << 6 | promotion << 12 (0 none, 1 knight .. 4 queen).
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from numba import njit

from gristmill.chess.kernels.attacks import attacked, lowest
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

TURN, RIGHTS, EP, CLOCK, MATERIAL, QUEENS, PLY = range(7)


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
