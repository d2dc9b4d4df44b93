"""Attack tables and Zobrist numbers, computed once from the moves of the pieces.

Squares are 0 to 63, from a1, b1 to h8; a bitboard is a uint64 with bit s for square s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

U64 = np.uint64

# The first four rays go to higher squares: the nearest blocker is the lowest set bit.
# The other four are their opposites: the nearest blocker is the highest set bit.
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (-1, 1), (0, -1), (-1, 0), (-1, -1), (1, -1))
_KNIGHT = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))


def _reach(steps: tuple[tuple[int, int], ...], far: bool) -> NDArray[np.uint64]:
    table = [0] * 64
    for square in range(64):
        for step_file, step_rank in steps:
            file, rank = square % 8 + step_file, square // 8 + step_rank
            while 0 <= file < 8 and 0 <= rank < 8:
                table[square] |= 1 << (rank * 8 + file)
                if not far:
                    break
                file, rank = file + step_file, rank + step_rank
    return np.array(table, dtype=U64)


def _numbers(count: int) -> NDArray[np.uint64]:
    """The first `count` numbers of splitmix64 from zero."""
    mask, state, out = (1 << 64) - 1, 0, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append(z ^ (z >> 31))
    return np.array(out, dtype=U64)


BIT = np.array([1 << s for s in range(64)], dtype=U64)
KNIGHT = _reach(_KNIGHT, far=False)
KING = _reach(DIRECTIONS, far=False)
# PAWN[c][s]: squares that a pawn of colour c (0 white, 1 black) on s attacks.
PAWN = np.stack([_reach(((-1, 1), (1, 1)), far=False), _reach(((-1, -1), (1, -1)), far=False)])
RAY = np.stack([_reach((d,), far=True) for d in DIRECTIONS])
ROOK_LINES = RAY[0] | RAY[1] | RAY[4] | RAY[5]
BISHOP_LINES = RAY[2] | RAY[3] | RAY[6] | RAY[7]

LIGHT = np.uint64(sum(1 << s for s in range(64) if (s % 8 + s // 8) % 2 == 1))

# Castling rights as four bits: 1 white short, 2 white long, 4 black short,
# 8 black long. A move from or to a square of this table keeps only these.
KEEP_RIGHTS = np.full(64, 15, dtype=np.int64)
for _square, _kept in ((4, 12), (7, 14), (0, 13), (60, 3), (63, 11), (56, 7)):
    KEEP_RIGHTS[_square] = _kept

# Weights of the phase rule, by kind of piece (docs/formats/chess.md#phases).
WEIGHT = np.array([0, 3, 3, 5, 9, 0], dtype=np.int64)

_zobrist = _numbers(2 * 6 * 64 + 16 + 8 + 1)
Z_PIECE = _zobrist[:768].reshape(2, 6, 64)
Z_RIGHTS = _zobrist[768:784]
Z_EP = _zobrist[784:792]
Z_TURN = np.uint64(_zobrist[792])

_BACK = (3, 1, 2, 4, 5, 2, 1, 3)


def start_boards() -> NDArray[np.uint64]:
    """The start position: white, black, pawns, knights, bishops, rooks, queens, kings."""
    boards = [0xFFFF, 0xFFFF << 48, (0xFF << 8) | (0xFF << 48), 0, 0, 0, 0, 0]
    for file, kind in enumerate(_BACK):
        boards[2 + kind] |= (1 << file) | (1 << (56 + file))
    return np.array(boards, dtype=U64)


START_BOARDS = start_boards()
# Kind of piece on each square of the start position, -1 where empty.
START_KINDS = np.full(64, -1, dtype=np.int8)
for _file, _kind in enumerate(_BACK):
    START_KINDS[[_file, 56 + _file]] = _kind
START_KINDS[8:16] = 0
START_KINDS[48:56] = 0
START_HASH = np.uint64(
    int(
        np.bitwise_xor.reduce(
            [Z_PIECE[s // 32, START_KINDS[s], s] for s in range(64) if START_KINDS[s] >= 0]
        )
        ^ Z_RIGHTS[15]
    )
)
