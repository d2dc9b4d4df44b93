"""Sets of runs for training and holding out, which never share a game.

Reading the rows of a set is the business of `reader.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.metadata_db import Run
from gristmill.macroxue.read.gather import row_numbers

RunIds = npt.NDArray[np.uint32]


class RowSet:
    """The rows of some runs, numbered 0..len-1; takes memory for runs, not for rows.

    run_ids: uint32 [R], ascending. firsts, counts: where each run stands in the pack.
    """

    def __init__(self, run_ids: RunIds, firsts: Sequence[int], counts: Sequence[int]) -> None:
        self.run_ids = run_ids
        self._firsts = np.array(firsts, np.int64)
        self._ends = np.cumsum(counts, dtype=np.int64)
        self._shift = self._firsts - (self._ends - np.array(counts, np.int64))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def rows(self, numbers: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """Global row numbers [N] of the rows that have these numbers [N] in the set."""
        places = row_numbers(numbers)
        if len(places) and (int(places.min()) < 0 or int(places.max()) >= len(self)):
            wrong = places[(places < 0) | (places >= len(self))][0]
            raise IndexError(f"row {wrong} of a set of {len(self)} rows")
        if len(places) == 0:
            return places
        found: npt.NDArray[np.int64] = (
            places + self._shift[np.searchsorted(self._ends, places, "right")]
        )
        return found

    def all_rows(self) -> npt.NDArray[np.int64]:
        """Every global row number of the set, ascending: 8 bytes a row."""
        return self.rows(np.arange(len(self)))


def identity(run: Run) -> tuple[int, int, int, int]:
    """What makes a run the same game in any pack: seed, steps, score, highest tile."""
    return run.seed, run.steps, run.max_score, run.highest_tile


def _share(run: Run, seed: int) -> float:
    """A number in [0, 1) that depends on the game and the seed alone."""
    text = json.dumps([seed, *identity(run)]).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "big") / (1 << 56)


def held_by_hash(runs: Sequence[Run], held_out: float, seed: int) -> RunIds:
    """Ids of about `held_out` of the runs, each by its own hash: a game that is held out
    in one pack is held out in every pool that it goes into."""
    return np.array([run.id for run in runs if _share(run, seed) < held_out], np.uint32)


def held_by_permutation(runs: Sequence[Run], held_out: float, seed: int) -> RunIds:
    """Ids of exactly ceil(held_out * runs): the first of a PCG64 permutation (docs/formats/macroxue.md#splits), and
    any further run that is the same game as one of them."""
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(runs))
    chosen = {identity(runs[place]) for place in order[: math.ceil(held_out * len(runs))]}
    return np.array([run.id for run in runs if identity(run) in chosen], np.uint32)


def refuse_sharing(runs: Sequence[Run], one: RunIds, other: RunIds) -> None:
    """Raise ValueError naming the first run that is, or is the same game as one, on both sides."""
    sides = [{int(run_id) for run_id in ids} for ids in (one, other)]
    games = {identity(run): run.id for run in runs if run.id in sides[0]}
    for run in runs:
        if run.id in sides[1] and identity(run) in games:
            raise ValueError(
                f"run {run.id} is held out, but run {games[identity(run)]} of the training runs is"
                " the same game: make the two queries exclude each other"
            )
