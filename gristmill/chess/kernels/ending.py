"""How a position ends a game: mate, stalemate, dead position, repetition, move counts.

75 moves and five repetitions end a game by themselves; 50 moves and three repetitions only where
a player claims the draw. Source: docs/formats/chess.md#board-verdict
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.kernels.attacks import count
from gristmill.chess.kernels.board import CLOCK, TURN, full_key, in_check, make
from gristmill.chess.kernels.moves import legal_moves
from gristmill.chess.kernels.tables import BIT, LIGHT

# By colour and kind, as a FEN has them.
_LETTERS = np.frombuffer(b"PNBRQKpnbrqk", np.uint8).reshape(2, 6).copy()
OPEN, WHITE_MATES, BLACK_MATES, DRAWN, CLAIMABLE, UNSURE = range(6)
_MOST_MOVES = 256  # no legal position has more than 218


@njit
def dead(bb):
    """Whether neither side has the material to mate."""
    if bb[2] | bb[5] | bb[6]:
        return False
    if bb[3]:
        return count(bb[0] | bb[1]) <= 3
    return not (bb[4] & LIGHT) or not (bb[4] & ~LIGHT)


@njit
def shows(buf, p, bb, kinds, turn):
    """Whether the FEN at p has the pieces and the turn of the position."""
    for rank in range(7, -1, -1):
        empty = 0
        for file in range(9):
            square = rank * 8 + file
            if file < 8 and kinds[square] < 0:
                empty += 1
                continue
            if empty:
                if buf[p] != 48 + empty:
                    return False
                p, empty = p + 1, 0
            if file < 8:
                if buf[p] != _LETTERS[0 if bb[0] & BIT[square] else 1, kinds[square]]:
                    return False
                p += 1
        if buf[p] != (47 if rank else 32):
            return False
        p += 1
    return buf[p] == (98 if turn else 119)


@njit
def _times(keys, ply, clock, key):
    """How often `key` is among keys[..ply], back to the last capture or pawn move."""
    seen = 0
    for back in range(ply, max(-1, ply - clock - 1), -1):
        if keys[back] == key:
            seen += 1
    return seen


@njit
def verdict(bb, kinds, st, key, keys, ply, wants_claims):
    """The verdict after the last move (docs/formats/chess.md#board-verdict).

    keys: hash of each position, keys[0..ply]. wants_claims: look for claims of a draw.

    Returns WHITE_MATES, BLACK_MATES, DRAWN (without a claim), CLAIMABLE (only with
    `wants_claims`), OPEN, or UNSURE near the fifty-move rule, where python-chess decides.
    """
    found = np.empty(_MOST_MOVES, dtype=np.int64)
    if legal_moves(bb, kinds, st, found, 1) == 0:
        if in_check(bb, st):
            return BLACK_MATES if st[TURN] == 0 else WHITE_MATES
        return DRAWN
    clock = st[CLOCK]
    if dead(bb) or clock >= 150 or _times(keys, ply, clock, keys[ply]) >= 5:
        return DRAWN
    if not wants_claims:
        return OPEN
    if clock >= 98:
        return UNSURE
    if _times(keys, ply, clock, keys[ply]) >= 3:
        return CLAIMABLE
    # A next move can make a third repetition only of a position that was there twice.
    twice = False
    for back in range(ply - 3, max(-1, ply - clock - 1), -1):
        if _times(keys, back, clock, keys[back]) >= 2:
            twice = True
            break
    if not twice:
        return OPEN
    n = legal_moves(bb, kinds, st, found, _MOST_MOVES)
    for i in range(n):
        bb2, kinds2, st2, key2 = bb.copy(), kinds.copy(), st.copy(), key.copy()
        make(bb2, kinds2, st2, key2, found[i])
        if st2[CLOCK] and _times(keys, ply, clock, full_key(bb2, kinds2, st2, key2)) >= 2:
            return CLAIMABLE
    return OPEN
