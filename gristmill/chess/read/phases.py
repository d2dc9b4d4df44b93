"""Phase codes of games from their moves, for rows without a sidecar and for the laws.

The replay is compiled; python-chess decides only where a king moves onto its own rook.
Source: docs/formats/chess.md#phases
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.raw import python_chess

_MOVE = re.compile(r"([a-h])([1-8])([a-h])([1-8])([nbrq]?)")
# The packed form of a text that is no move.
NO_MOVE = 0xFFFF


def pack_move(text: str) -> int:
    """A UCI move as from | to << 6 | promotion << 12; NO_MOVE for any other text.

    text: as `e2e4` or `a7a8q`. A square is 0 (a1) to 63 (h8); a promotion is 0 for
        none, 1 knight, 2 bishop, 3 rook, 4 queen.
    """
    match = _MOVE.fullmatch(text)
    if not match or match[1] + match[2] == match[3] + match[4]:
        return NO_MOVE
    origin = ord(match[1]) - 97 + (ord(match[2]) - 49) * 8
    target = ord(match[3]) - 97 + (ord(match[4]) - 49) * 8
    return origin | target << 6 | ("nbrq".index(match[5]) + 1 if match[5] else 0) << 12


def unpack_move(move: int) -> str:
    """A packed move as UCI text; `0000` for NO_MOVE."""
    if move == NO_MOVE:
        return "0000"
    origin, target, promotion = move & 63, (move >> 6) & 63, move >> 12
    files = "abcdefgh"
    text = f"{files[origin & 7]}{(origin >> 3) + 1}{files[target & 7]}{(target >> 3) + 1}"
    return text + "nbrq"[promotion - 1] if promotion else text


def replay_phases(moves: NDArray[np.uint16], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Phase codes of games, by replay from the start position.

    moves: packed moves, game after game; uint16 [plies].
    lengths: plies of each game, int64 [games].
    Returns uint8 [plies], 0 from the first move of a game on that is not legal.
    """
    from gristmill.chess.kernels.board import new_board
    from gristmill.chess.kernels.replay import replay

    codes = np.zeros(len(moves), np.uint8)
    board, ply, game = new_board(), 0, 0
    lengths = np.ascontiguousarray(lengths)
    while (undecided := replay(moves, ply, lengths[game:], codes, board)) >= 0:
        ply += int(lengths[game : game + undecided].sum())
        game += undecided
        n = int(lengths[game])
        texts = [unpack_move(move) for move in moves[ply : ply + n].tolist()]
        codes[ply : ply + n] = np.frombuffer(python_chess.phase_codes(texts), np.uint8)
        ply, game = ply + n, game + 1
    return codes


def phase_codes(games: Sequence[Sequence[str]]) -> list[bytes]:
    """The phase codes of each game of UCI moves, one byte a ply. Raises MissingPythonChess."""
    lengths = np.array([len(game) for game in games], dtype=np.int64)
    moves = np.array([pack_move(move) for game in games for move in game], dtype=np.uint16)
    codes = replay_phases(moves, lengths)
    ends = np.cumsum(lengths).tolist()
    return [codes[e - n : e].tobytes() for e, n in zip(ends, lengths.tolist(), strict=True)]
