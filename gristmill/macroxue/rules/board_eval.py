"""board_eval: Macroxue's heuristic score of a board, from its formula (docs/formats/macroxue.md#board-evaluation).

A tile of rank r weighs T(r) = r * 2**r. A line starts with T of its first cell;
each adjacent pair (a, b) of weights adds a + b if a >= b, else 12 * (a - b), and
a once more if a == b. A board is the sum of its 4 rows read left to right and
its 4 columns read top to bottom. The compiled form for scanning is in `scan.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_RANK = 31
"""Ranks above have no weight in the original's tables (docs/formats/macroxue.md#step-object)."""

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


@lru_cache(maxsize=1 << 16)
def line_score(line: tuple[int, int, int, int]) -> int:
    """Score of one line of ranks, read towards the wall where tiles should shrink."""
    weights = [rank << rank for rank in line]
    score = weights[0]
    for a, b in pairwise(weights):
        score += a + b if a >= b else 12 * (a - b)
        if a == b:
            score += a
    return score


def board_score(ranks: Sequence[int]) -> int:
    """Score of one board of 16 ranks 0..31, row-major; may exceed int32 from rank 20 on."""
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
    """Scores int32 [N] of boards of ranks [N, 16], each 0..31, row-major.

    Raises OverflowError naming the first board whose score does not fit int32
    (possible from rank 20 on), ValueError for a rank out of range.
    """
    scores = board_scores(ranks)
    outside = np.flatnonzero((scores < INT32_MIN) | (scores > INT32_MAX))
    if len(outside):
        at = int(outside[0])
        raise OverflowError(f"board {at}: board_eval {int(scores[at])} does not fit int32")
    return scores.astype(np.int32)


def board_scores(ranks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """As `board_eval`, but int64 [N] whether or not the scores fit int32."""
    cells = np.asarray(ranks, np.int64).reshape(-1, 4, 4)
    if cells.size and not 0 <= cells.min() <= cells.max() <= MAX_RANK:
        raise ValueError(f"ranks must be 0..{MAX_RANK}")
    weights = cells << cells
    scores: npt.NDArray[np.int64] = _line_scores(weights).sum(axis=1)
    scores += _line_scores(weights.swapaxes(1, 2)).sum(axis=1)
    return scores


def line_table() -> npt.NDArray[np.int32]:
    """Scores int32 [65536] of every line of ranks 0..15, keyed by its nibbles, first highest."""
    keys = np.arange(1 << 16, dtype=np.int64)
    cells: npt.NDArray[np.int64] = np.stack([keys >> k & 15 for k in (12, 8, 4, 0)], axis=1)
    return _line_scores(cells << cells).astype(np.int32)


def _nibbles_at(*cells: int) -> np.uint64:
    return np.uint64(sum(15 << (60 - 4 * cell) for cell in cells))


# A transposition swaps cells across the diagonal of each 2 x 2 block (3 cells, 12
# bits apart), then the blocks themselves (6 cells, 24 bits): (shift, lower cells).
_SWAPS = (
    (np.uint64(12), _nibbles_at(4, 6, 12, 14)),
    (np.uint64(24), _nibbles_at(8, 9, 12, 13)),
)


def transposed(boards: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Packed boards [N] with rows and columns exchanged."""
    for shift, lower in _SWAPS:
        apart = (boards ^ (boards >> shift)) & lower
        boards = boards ^ apart ^ (apart << shift)
    return boards


def packed_scores(
    boards: npt.NDArray[np.uint64], table: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Scores int32 [N] of packed boards [N] without ranks above 15. table: `line_table()`."""
    total = np.zeros(len(boards), np.int32)
    for lines in (np.ascontiguousarray(boards), transposed(boards)):
        keys = lines.view(np.uint16).reshape(-1, 4)
        for line in range(4):
            total += table[keys[:, line]]
    return total
