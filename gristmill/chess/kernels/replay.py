"""Packed moves replayed from the start position: legality and phase code of each ply."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from gristmill.chess.kernels.attacks import borrowed
from gristmill.chess.kernels.board import make, phase, reset
from gristmill.chess.kernels.moves import legal
from gristmill.run.kernels import kernel

NULL_MOVE = 0xFFFF  # the packed form of a text that is no move, such as 0000


@kernel()
def replay(moves, first, lengths, phases, board):
    """Fill the phase codes of games.

    moves: packed, game after game, uint16; the first game begins at `first`.
    lengths: plies of each game, int64. phases: uint8, one a ply; the codes of a game
    are 0 from its first illegal move on. board: see `board.new_board`.
    Returns the number of the first game that python-chess must decide, or -1.
    """
    moves, lengths, phases = borrowed(moves), borrowed(lengths), borrowed(phases)
    bb, kinds, st, key = (
        borrowed(board[0]),
        borrowed(board[1]),
        borrowed(board[2]),
        borrowed(board[3]),
    )
    at = first
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
