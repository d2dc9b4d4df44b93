"""Phase codes of games given as packed or UCI moves, for rows without a sidecar and for laws.

The rule is `kernels.board.phase` (docs/formats/chess.md#phases); the replay is compiled, and the
oracle is asked only for a king that moves onto its own rook.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.raw import python_chess

_MOVE = re.compile(r"([a-h])([1-8])([a-h])([1-8])([nbrq]?)")
NO_MOVE = 0xFFFF


def pack_move(text: str) -> int:
    """A UCI move as from | to << 6 | promotion << 12; NO_MOVE for what is none."""
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


def replayed(moves: NDArray[np.uint16], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Phase codes of packed moves, one a ply, games of `lengths` plies laid end to end.

    0 from the first move on that is not legal from the start position.
    """
    from gristmill.chess.kernels.replay import replay
    from gristmill.chess.kernels.scan import new_board

    codes = np.zeros(len(moves), np.uint8)
    board, begun, first = new_board(), 0, 0
    lengths = np.ascontiguousarray(lengths)
    while (unsure := replay(moves, begun, lengths[first:], codes, board)) >= 0:
        begun += int(lengths[first : first + unsure].sum())
        first += unsure
        n = int(lengths[first])
        texts = [unpack_move(move) for move in moves[begun : begun + n].tolist()]
        codes[begun : begun + n] = np.frombuffer(python_chess.phase_codes(texts), np.uint8)
        begun, first = begun + n, first + 1
    return codes


def phase_codes(games: Sequence[Sequence[str]]) -> list[bytes]:
    """The phase code after each ply of each game of UCI moves, one byte a ply."""
    lengths = np.array([len(game) for game in games], dtype=np.int64)
    moves = np.array([pack_move(move) for game in games for move in game], dtype=np.uint16)
    codes = replayed(moves, lengths)
    ends = np.cumsum(lengths).tolist()
    return [codes[e - n : e].tobytes() for e, n in zip(ends, lengths.tolist(), strict=True)]
