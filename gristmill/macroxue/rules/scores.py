"""board_eval, the engine's heuristic score of a board; and bins of the values of branches.

A tile of rank r weighs T(r) = r * 2**r. The score of a line starts with T of its first cell; each
adjacent pair (a, b) of weights adds a + b if a >= b, else 12 * (a - b), and a once more if a == b.
The score of a board is the sum over its 4 rows, read left to right, and its 4 columns, read top to
bottom. `../raw/fast_scanner.py` and `rank_search.py` hold compiled forms.

Bins are fitted as the trainer's second tokenizer fits them. A branch that was not chosen is a
failure, is worth as much as the chosen one, or has a negative difference to it. The bins are
quantiles of these differences.
Source: docs/formats/macroxue.md#board-evaluation, docs/formats/macroxue.md#tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.rows import Rows

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


KINDS: Final = ("search", "tuple10", "tuple11")
"""The valuation types that have bins."""
SEARCH_SCALE: Final = 1000.0
_STEP: Final = 1e-9
# Differences that are gathered before they are counted.
_GATHERED: Final = 1 << 20


@dataclass(frozen=True)
class BinRules:
    """How branches are judged.

    failure_cutoff: search branches worth less than board_eval plus this are failures.
    """

    failure_cutoff: int
    zero_tolerance: float


class Branches(NamedTuple):
    """The branches of rows of one kind that have a value and were not chosen.

    rows, legal, failures, zeros: numbers of rows, of these branches, of failures, and of those
        that are worth as much as the chosen one.
    below: float64 [M], the negative differences of the others.
    """

    rows: int
    legal: int
    failures: int
    zeros: int
    unvalued: int
    below: npt.NDArray[np.float64]


def branches(rows: Rows, kind: str, rules: BinRules) -> Branches:
    """Judge the branches of rows [N], all of one kind."""
    places, moves = np.arange(len(rows)), rows["move_dir"] & 3
    legal = ((rows["ev_legal"][:, None] >> np.arange(4)) & 1).astype(np.bool_)
    unvalued = int(np.count_nonzero(~legal[places, moves]))
    legal[places, moves] = False
    values = rows["branch_evs"].astype(np.float64)
    if kind == "search":
        values = np.rint(values * SEARCH_SCALE)
        tolerance = 0.5
        worst = values - rows["board_eval"].astype(np.float64)[:, None] < rules.failure_cutoff
    else:
        tolerance = rules.zero_tolerance
        worst = values <= rules.zero_tolerance
    failures = worst & legal
    with np.errstate(invalid="ignore"):  # infinity less infinity
        differences = values - values[places, moves][:, None]
    judged = legal & ~failures
    zeros = judged & (np.abs(differences) <= tolerance)
    below = differences[judged & ~zeros]
    others, failed, equal = (int(np.count_nonzero(flags)) for flags in (legal, failures, zeros))
    return Branches(len(rows), others, failed, equal, unvalued, below[below < 0])


@dataclass
class Differences:
    """The negative differences of one kind, each once with its number: exact, and in little memory.

    counts: `rows`, `legal_branches`, `failure_branches` and `zero_disadvantage`, as the trainer
        calls them, and `unvalued`.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    _numbers: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _new: list[npt.NDArray[np.float64]] = field(default_factory=list)
    _gathered: int = 0

    def add(self, found: Branches) -> None:
        """Add the branches of more rows."""
        self.counts.update(
            rows=found.rows,
            legal_branches=found.legal,
            failure_branches=found.failures,
            zero_disadvantage=found.zeros,
            unvalued=found.unvalued,
        )
        self._new.append(found.below)
        self._gathered += len(found.below)
        if self._gathered >= max(_GATHERED, len(self._values)):
            self._count()

    def _count(self) -> None:
        new, numbers = np.unique(np.concatenate([np.empty(0), *self._new]), return_counts=True)
        self._new, self._gathered = [], 0
        joined = np.concatenate([self._values, new])
        self._values, places = np.unique(joined, return_inverse=True)
        weights = np.concatenate([self._numbers, numbers])
        self._numbers = np.zeros(len(self._values), np.int64)
        np.add.at(self._numbers, places, weights)

    def __len__(self) -> int:
        """The number of differences."""
        self._count()
        return int(self._numbers.sum())

    def edges(self, bins: int) -> list[float]:
        """The edges of bins: bins + 1 numbers, each above the one before.

        Linear quantiles at even distances, as `np.quantile` gives them; the last edge is at least
        0, and an edge that is not above the one before is 1e-9 above it.

        Raises ValueError for fewer differences than bins, and for edges that float64 does not tell
        apart or that are not finite.
        """
        total = len(self)
        if total < bins:
            raise ValueError(f"{total} negative differences do not fill {bins} bins")
        ends = np.cumsum(self._numbers)
        quantiles = np.linspace(0.0, 1.0, bins + 1) * (total - 1)
        found: list[float] = []
        for place in quantiles.tolist():
            low = int(place)
            around = np.searchsorted(ends, [low, min(low + 1, total - 1)], "right")
            found.append(float(np.quantile(self._values[around], place - low)))
        found[-1] = max(found[-1], 0.0)
        for at in range(1, len(found)):
            if found[at] <= found[at - 1]:
                found[at] = found[at - 1] + _STEP
        if not (np.isfinite(found).all() and (np.diff(found) > 0).all()):
            raise ValueError("the edges of the bins are infinite, or too large to differ")
        return found


class Fit:
    """The fit of all kinds over the rows of a dataset."""

    def __init__(self, names: Sequence[str], rules: BinRules) -> None:
        self._ids = {kind: names.index(kind) for kind in KINDS if kind in names}
        self._rules = rules
        self.kinds = {kind: Differences() for kind in KINDS}

    def add(self, rows: Rows) -> None:
        """Add rows [N]."""
        for kind, number in self._ids.items():
            own = rows[rows["valuation_type"] == number]
            if len(own):
                self.kinds[kind].add(branches(own, kind, self._rules))
