"""Legal moves: the move that the parts of a SAN token name, legality of a move, all moves."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from numba import njit

from gristmill.chess.kernels.attacks import bishop_attacks, lowest, rook_attacks
from gristmill.chess.kernels.board import EP, TURN, leaves_king_safe, may_castle
from gristmill.chess.kernels.tables import BIT, KING, KNIGHT, PAWN, U64


@njit(forceinline=True)
def reach(bb, kind, square, occupied):
    """Squares that a knight, bishop, rook, queen or king on `square` attacks."""
    if kind == 1:
        return KNIGHT[square]
    if kind == 2:
        return bishop_attacks(square, occupied)
    if kind == 3:
        return rook_attacks(square, occupied)
    if kind == 4:
        return bishop_attacks(square, occupied) | rook_attacks(square, occupied)
    return KING[square]


@njit(forceinline=True)
def pawn_targets(bb, st, origin):
    """Squares that the pawn of the side to move on `origin` can go to; checks do not count."""
    turn = st[TURN]
    occupied = bb[0] | bb[1]
    takes = bb[1 - turn]
    if st[EP] >= 0:
        takes |= BIT[st[EP]]
    targets = PAWN[turn, origin] & takes
    step = 8 - 16 * turn
    if not occupied & BIT[origin + step]:
        targets |= BIT[origin + step]
        if origin >> 3 == 1 + 5 * turn and not occupied & BIT[origin + 2 * step]:
            targets |= BIT[origin + 2 * step]
    return targets


@njit(forceinline=True)
def resolve(bb, kinds, st, kind, from_file, from_rank, target, promotion):
    """The one legal move that the parts of a SAN token name; -1 if none or more than one.

    from_file and from_rank are -1 where SAN gives none. A pawn move without a
    file is a push.
    """
    turn = st[TURN]
    if bb[turn] & BIT[target]:
        return -1
    if kind == 0:
        if (target >> 3 == 7 - 7 * turn) != (promotion > 0):
            return -1
        step = 8 - 16 * turn
        if from_file >= 0 and from_file != target & 7:
            if abs(from_file - (target & 7)) != 1:
                return -1
            origin = (target & 56) - step + from_file
        else:
            origin = target - step
            if origin >= 0 and origin < 64 and kinds[origin] < 0:
                origin -= step
        if origin < 0 or origin > 63 or (from_rank >= 0 and origin >> 3 != from_rank):
            return -1
        if kinds[origin] != 0 or not bb[turn] & BIT[origin]:
            return -1
        if not pawn_targets(bb, st, origin) & BIT[target]:
            return -1
        if not leaves_king_safe(bb, kinds, st, origin, target):
            return -1
        return origin | target << 6 | promotion << 12
    if promotion:
        return -1
    candidates = reach(bb, kind, target, bb[0] | bb[1]) & bb[2 + kind] & bb[turn]
    found = -1
    while candidates:
        origin = lowest(candidates)
        candidates &= candidates - U64(1)
        if from_file >= 0 and origin & 7 != from_file:
            continue
        if from_rank >= 0 and origin >> 3 != from_rank:
            continue
        if leaves_king_safe(bb, kinds, st, origin, target):
            if found >= 0:
                return -1
            found = origin | target << 6
    return found


@njit(forceinline=True)
def legal(bb, kinds, st, move):
    """1 if the packed move is legal here, 0 if not, -1 where python-chess must decide.

    It must decide where a king moves onto its own rook, which some notations use for
    castling.
    """
    turn = st[TURN]
    origin, target, promotion = move & 63, (move >> 6) & 63, move >> 12
    if not bb[turn] & BIT[origin]:
        return 0
    kind = kinds[origin]
    if bb[turn] & BIT[target]:
        return -1 if kind == 5 and kinds[target] == 3 else 0
    if kind == 0:
        if (target >> 3 == 7 - 7 * turn) != (promotion > 0):
            return 0
        if not pawn_targets(bb, st, origin) & BIT[target]:
            return 0
    else:
        if promotion:
            return 0
        if kind == 5 and origin == 4 + 56 * turn and abs(target - origin) == 2:
            return 1 if may_castle(bb, st, target > origin) else 0
        if not reach(bb, kind, origin, bb[0] | bb[1]) & BIT[target]:
            return 0
    return 1 if leaves_king_safe(bb, kinds, st, origin, target) else 0


@njit
def legal_moves(bb, kinds, st, found, limit):
    """Write up to `limit` legal moves into `found` (int64); return how many were written.

    A promotion is listed once, to a queen: whether a move exists, and whether it
    repeats a position, does not depend on the piece.
    """
    turn = st[TURN]
    n = 0
    pieces = bb[turn]
    while pieces:
        origin = lowest(pieces)
        pieces &= pieces - U64(1)
        kind = kinds[origin]
        if kind == 0:
            targets = pawn_targets(bb, st, origin)
        else:
            targets = reach(bb, kind, origin, bb[0] | bb[1]) & ~bb[turn]
        while targets:
            target = lowest(targets)
            targets &= targets - U64(1)
            if leaves_king_safe(bb, kinds, st, origin, target):
                promotion = 4 if kind == 0 and (target >> 3 == 7 - 7 * turn) else 0
                found[n] = origin | target << 6 | promotion << 12
                n += 1
                if n == limit:
                    return n
    for short in range(2):
        if may_castle(bb, st, short == 1):
            found[n] = (4 + 56 * turn) | (4 + 56 * turn + (2 if short else -2)) << 6
            n += 1
            if n == limit:
                return n
    return n
