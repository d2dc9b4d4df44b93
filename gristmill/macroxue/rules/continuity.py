"""Whether a game has all steps, by boards and rewards. Source: docs/formats/macroxue.md#gaps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.rules.moves import has_new_tile
from gristmill.macroxue.rules.true_ranks import TrueRanks


def broken(
    known: TrueRanks, after: npt.NDArray[np.uint8], judged: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Rows whose board is not the one before, moved, with one new tile of rank 1 or 2: bool [N].

    known: ranks of the boards.
    after: uint8 [N, 16], ranks after the recorded moves.
    judged: bool [N - 1], whether a row is compared with the row before. Rows behind one of unknown
        ranks are not.
    """
    wrong = np.zeros(len(after), np.bool_)
    # If the ranks of the later row are unknown, ranks of 16 and more count as equal.
    cap = np.where(known.unknown[1:], 16, 32).astype(np.uint8)[:, None]
    board, expected = np.minimum(known.ranks[1:], cap), np.minimum(after[:-1], cap)
    wrong[1:] = judged & ~known.unknown[:-1] & ~has_new_tile(expected, board)
    return wrong


def fresh(board: npt.NDArray[np.uint8]) -> bool:
    """Whether ranks uint8 [16] are the board of a new game: two tiles of rank 1 or 2."""
    return np.count_nonzero(board) == 2 and int(board.max()) <= 2


def lacks_points(first: npt.NDArray[np.uint8], points: int, score: int) -> bool:
    """Whether the rewards of a game do not sum to its score, nor to its score from a late start.

    first: uint8 [16], true ranks of the first board.

    A board that is no new game's was reached with the points of its tiles: (r - 1) * 2^r for a tile
    of rank r if all new tiles had rank 1, (r - 2) * 2^r if all had rank 2.
    """
    if points == score:
        return False
    ranks = [int(rank) for rank in first if rank]
    most = sum((rank - 1) << rank for rank in ranks)
    least = sum((rank - 2) << rank for rank in ranks if rank > 2)
    return fresh(first) or not least <= score - points <= most
