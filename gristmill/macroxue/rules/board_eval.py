"""board_eval: the engine's heuristic score of a board, for one board and for many.

A tile of rank r weighs T(r) = r * 2**r. The score of a line starts with T of its first cell; each
adjacent pair (a, b) of weights adds a + b if a >= b, else 12 * (a - b), and a once more if a == b.
The score of a board is the sum over its 4 rows, read left to right, and its 4 columns, read top to
bottom. `../raw/fast_scanner.py` and `rank_search.py` hold compiled forms.
Source: docs/formats/macroxue.md#board-evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_RANK = 31
"""The highest rank that has a score (docs/formats/macroxue.md#step-object)."""

FITS_INT32 = 19
"""The highest rank with which the score of every board fits int32."""

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


@lru_cache(maxsize=1 << 16)
def line_score(line: tuple[int, int, int, int]) -> int:
    """Score of one line."""
    weights = [rank << rank for rank in line]
    score = weights[0]
    for a, b in pairwise(weights):
        score += a + b if a >= b else 12 * (a - b)
        if a == b:
            score += a
    return score


def board_score(ranks: Sequence[int]) -> int:
    """Score of one board; from rank 20 on it may not fit int32."""
    a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q = ranks
    return (
        line_score((a, b, c, d))
        + line_score((e, f, g, h))
        + line_score((i, j, k, m))
        + line_score((n, o, p, q))
        + line_score((a, e, i, n))
        + line_score((b, f, j, o))
        + line_score((c, g, k, p))
        + line_score((d, h, m, q))
    )


def _line_scores(weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    a, b = weights[..., :-1], weights[..., 1:]
    pairs = np.where(a >= b, a + b, 12 * (a - b)) + np.where(a == b, a, 0)
    scores: npt.NDArray[np.int64] = weights[..., 0] + pairs.sum(axis=-1)
    return scores


def board_eval(ranks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
    """Scores of many boards as int32 [N].

    ranks: integers [N, 16], each 0..31, row by row.

    Raises OverflowError, naming the first board, where a score does not fit int32, which is
    possible from rank 20 on. Raises ValueError for a rank out of range.
    """
    scores = board_scores(ranks)
    too_large = np.flatnonzero((scores < INT32_MIN) | (scores > INT32_MAX))
    if len(too_large):
        first = int(too_large[0])
        raise OverflowError(f"board {first}: board_eval {int(scores[first])} does not fit int32")
    return scores.astype(np.int32)


def board_scores(ranks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Scores of ranks [N, 16] as int64 [N], also where they do not fit int32."""
    cells = np.asarray(ranks, np.int64).reshape(-1, 4, 4)
    if cells.size and not 0 <= cells.min() <= cells.max() <= MAX_RANK:
        raise ValueError(f"ranks must be 0..{MAX_RANK}")
    weights = cells << cells
    scores: npt.NDArray[np.int64] = _line_scores(weights).sum(axis=1)
    scores += _line_scores(weights.swapaxes(1, 2)).sum(axis=1)
    return scores


def line_table() -> npt.NDArray[np.int32]:
    """Scores int32 [65536] of all lines of ranks 0..15.

    The index of a line is its four ranks as nibbles, the first rank in the highest nibble.
    """
    keys = np.arange(1 << 16, dtype=np.int64)
    cells: npt.NDArray[np.int64] = np.stack([keys >> k & 15 for k in (12, 8, 4, 0)], axis=1)
    return _line_scores(cells << cells).astype(np.int32)


def _nibbles_at(*cells: int) -> np.uint64:
    return np.uint64(sum(15 << (60 - 4 * cell) for cell in cells))


# A transposition swaps the two cells off the diagonal in each quarter of the board (3 cells,
# 12 bits apart), then the two quarters off the diagonal (6 cells, 24 bits): (shift, lower cells).
_SWAPS = (
    (np.uint64(12), _nibbles_at(4, 6, 12, 14)),
    (np.uint64(24), _nibbles_at(8, 9, 12, 13)),
)


def transposed(boards: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Packed boards uint64 [N] with rows and columns exchanged."""
    for shift, lower in _SWAPS:
        difference = (boards ^ (boards >> shift)) & lower
        boards = boards ^ difference ^ (difference << shift)
    return boards


def packed_scores(
    boards: npt.NDArray[np.uint64], table: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Scores int32 [N] of packed boards without ranks above 15.

    boards: uint64 [N], 16 nibbles, cell 0 the most significant.
    """
    total = np.zeros(len(boards), np.int32)
    for lines in (np.ascontiguousarray(boards), transposed(boards)):
        keys = lines.view(np.uint16).reshape(-1, 4)
        for line in range(4):
            total += table[keys[:, line]]
    return total
