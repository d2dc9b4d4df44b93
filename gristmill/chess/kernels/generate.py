"""Generated legal games in SAN, for samples and tests."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.chess.kernels.attacks import attacked, borrowed
from gristmill.chess.kernels.board import CLOCK, TURN, full_key, in_check, make, reset
from gristmill.chess.kernels.ending import DRAWN, OPEN, verdict
from gristmill.chess.kernels.moves import legal_moves
from gristmill.chess.kernels.tables import U64, WEIGHT
from gristmill.run.kernels import kernel

_LETTERS = np.frombuffer(b"?NBRQK", np.uint8).copy()
_MOST = 256  # no legal position has more than 218


@njit
def _next(state):
    """The next 64 bits of splitmix64; state: uint64[1]."""
    state[0] += U64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


@njit
def _worth(kind):
    return np.int64(1) if kind == 0 else WEIGHT[kind]


@njit
def _write_san(bb, kinds, st, found, n, move, out, o):
    """The SAN of a legal move, without check signs, at out[o:]; found: all legal moves."""
    origin, target, promotion = move & 63, (move >> 6) & 63, move >> 12
    kind = kinds[origin]
    if kind == 5 and abs(target - origin) == 2:
        for c in b"O-O" if target > origin else b"O-O-O":
            out[o] = c
            o += 1
        return o
    takes = kinds[target] >= 0 or (kind == 0 and (target - origin) % 8 != 0)
    if kind:
        out[o] = _LETTERS[kind]
        o += 1
        twins, same_file, same_rank = 0, 0, 0
        for i in range(n):
            other = found[i] & 63
            if other != origin and (found[i] >> 6) & 63 == target and kinds[other] == kind:
                twins += 1
                same_file += other & 7 == origin & 7
                same_rank += other >> 3 == origin >> 3
        if twins and (same_file == 0 or same_rank):
            out[o] = 97 + (origin & 7)
            o += 1
        if twins and same_file:
            out[o] = 49 + (origin >> 3)
            o += 1
    elif takes:
        out[o] = 97 + (origin & 7)
        o += 1
    if takes:
        out[o] = 120
        o += 1
    out[o], out[o + 1] = 97 + (target & 7), 49 + (target >> 3)
    o += 2
    if promotion:
        out[o], out[o + 1] = 61, _LETTERS[promotion]
        o += 2
    return o


@njit
def _appeal(bb, kinds, st, move, state):
    """The score of a move for the player; a number by lot decides between equal scores."""
    origin, target = move & 63, (move >> 6) & 63
    score = np.int64(_next(state) % U64(24))
    if kinds[target] >= 0:
        score += 12 * _worth(kinds[target])
    if move >> 12:
        score += 60
    kind = kinds[origin]
    if kind == 5:
        score += 20 if abs(target - origin) == 2 else -14
    forward = (target >> 3) - (origin >> 3)
    score += 2 * (forward if st[TURN] == 0 else -forward)
    occupied = bb[0] | bb[1]
    if attacked(bb, target, 1 - st[TURN], occupied, U64(0)):
        score -= 7 * _worth(kind)
    if kind and attacked(bb, origin, 1 - st[TURN], occupied, U64(0)):
        score += 6 * _worth(kind)
    return score


@kernel()
def play(opening, plies, seed, text, board):
    """Play a game that begins with `opening`, for at most `plies` plies in all.

    opening: packed moves, int64. text: uint8, filled with the moves in SAN joined by
    spaces, 8 bytes a ply at most. board: see `board.new_board`.
    Returns (bytes written, plies, verdict of `ending`).
    """
    bb, kinds, st = borrowed(board[0]), borrowed(board[1]), borrowed(board[2])
    key, keys = borrowed(board[3]), borrowed(board[4])
    reset(bb, kinds, st, key)
    keys[0] = key[0]
    state = np.array([U64(seed)])
    found = np.empty(_MOST, np.int64)
    o, ply, end = 0, 0, OPEN
    while ply < plies:
        n = legal_moves(bb, kinds, st, found, _MOST)
        best = -1
        if ply < opening.size:
            best = opening[ply]
        else:
            high = np.int64(-(1 << 40))
            for i in range(n):
                appeal = _appeal(bb, kinds, st, found[i], state)
                if appeal > high:
                    high, best = appeal, found[i]
        if ply:
            text[o] = 32
            o += 1
        o = _write_san(bb, kinds, st, found, n, best, text, o)
        make(bb, kinds, st, key, best)
        ply += 1
        keys[ply] = full_key(bb, kinds, st, key)
        end = verdict(bb, kinds, st, key, keys, ply, False)
        if in_check(bb, st):
            text[o] = 35 if end != OPEN and end != DRAWN else 43
            o += 1
        if end != OPEN or st[CLOCK] >= 96:
            break
    return o, ply, end
