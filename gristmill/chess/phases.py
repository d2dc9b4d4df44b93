"""Phase codes of games given as UCI moves: for rows without a sidecar, and for the laws.

The rule is `kernels.board.phase` (spec 2.7); the replay is compiled, and the
oracle is asked only for a king that moves onto its own rook.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from gristmill.chess import oracle

_MOVE = re.compile(r"([a-h])([1-8])([a-h])([1-8])([nbrq]?)")


def pack_move(text: str) -> int:
    """A UCI move as from | to << 6 | promotion << 12; 0xFFFF for what is none."""
    match = _MOVE.fullmatch(text)
    if not match:
        return 0xFFFF
    origin = ord(match[1]) - 97 + (ord(match[2]) - 49) * 8
    target = ord(match[3]) - 97 + (ord(match[4]) - 49) * 8
    if origin == target:
        return 0xFFFF
    return origin | target << 6 | ("nbrq".index(match[5]) + 1 if match[5] else 0) << 12


def phase_codes(games: Sequence[Sequence[str]]) -> list[bytes]:
    """The phase code after each ply of each game, one byte a ply.

    Codes: phase id in the low two bits (0 unknown from the first illegal move
    on), bit 2 for the second endgame rule.
    """
    from gristmill.chess.kernels.replay import replay
    from gristmill.chess.kernels.scan import new_board

    lengths = np.array([len(game) for game in games], dtype=np.int64)
    moves = np.array([pack_move(move) for game in games for move in game], dtype=np.uint16)
    phases = np.zeros(len(moves), dtype=np.uint8)
    board = new_board()
    begun, first = 0, 0
    while (unsure := replay(moves, begun, lengths[first:], phases, board)) >= 0:
        begun += int(lengths[first : first + unsure].sum())
        first += unsure
        game = games[first]
        codes = np.frombuffer(oracle.phase_codes(list(game)), np.uint8)
        phases[begun : begun + len(game)] = codes
        begun += len(game)
        first += 1
    ends = np.cumsum(lengths)
    return [phases[e - n : e].tobytes() for e, n in zip(ends.tolist(), lengths.tolist(), strict=True)]

