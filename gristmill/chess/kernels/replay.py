"""UCI moves replayed from the start position: legality and phase of every ply.

For games that come without a phase sidecar. The code of a ply is its phase id
(0 unknown, 1 opening, 2 middlegame, 3 endgame), plus 4 where the endgame is
one by `queens_off_low_material`.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from numba import njit

from gristmill.chess.kernels.attacks import borrowed
from gristmill.chess.kernels.board import make, phase, reset
from gristmill.chess.kernels.moves import legal
from gristmill.chess.kernels.stamp import KERNEL_STAMP

NULL_MOVE = 0xFFFF  # how a move that is not a move (0000) is packed


def _entry(stamp):
    """Close over the sources' stamp: see `stamp`."""

    @njit(cache=True)
    def replay(moves, first, lengths, phases, board):
        """Fill phases (uint8) for games laid end to end in moves (uint16) from `first` on.

        From the first illegal move of a game on, its codes stay 0. Returns the
        number of the first game that needs an oracle, or -1. board: `new_board()`.
        """
        moves, lengths, phases = borrowed(moves), borrowed(lengths), borrowed(phases)
        bb, kinds, st, key = (
            borrowed(board[0]),
            borrowed(board[1]),
            borrowed(board[2]),
            borrowed(board[3]),
        )
        at = first + (stamp & 0)
        for game in range(lengths.shape[0]):
            reset(bb, kinds, st, key)
            lawful = True
            for i in range(at, at + lengths[game]):
                phases[i] = 0
                if not lawful:
                    continue
                if moves[i] == NULL_MOVE:
                    lawful = False
                    continue
                move = int(moves[i])
                answer = legal(bb, kinds, st, move)
                if answer < 0:
                    return game
                if answer == 0:
                    lawful = False
                    continue
                make(bb, kinds, st, key, move)
                phases[i] = phase(st)
            at += lengths[game]
        return -1

    return replay


replay = _entry(KERNEL_STAMP)
