"""Bins of branch values, fitted as the trainer's second tokenizer fits them.

A branch that was not chosen is a failure, is worth as much as the chosen one, or has a negative
difference to it. The bins are quantiles of these differences.
Source: docs/formats/macroxue.md#tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.rows import Rows

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
