"""Games of whole runs, played, and their gaps. Source: docs/formats/macroxue.md#gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.metadata_db import Gap, Run
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.read.step_stream import Batch
from gristmill.macroxue.rules.continuity import broken, lacks_points
from gristmill.macroxue.rules.moves import legal_moves, move
from gristmill.macroxue.rules.true_ranks import TrueRanks, true_ranks


def playable(rows: Rows) -> npt.NDArray[np.uint8]:
    """The recorded moves as uint8 [N], with 0 instead of a move above 3.

    Such moves are violations, and must not stop the other laws.
    """
    moves: npt.NDArray[np.uint8] = np.where(rows["move_dir"] < 4, rows["move_dir"], 0)
    return moves.astype(np.uint8)


@dataclass(frozen=True)
class Played:
    """The rows of a batch, and what their moves do.

    moves: uint8 [N], the recorded moves as `playable` returns them.
    after: uint8 [N, 16], ranks after the moves.
    reward: int64 [N], points of the moves.
    changed: bool [N], whether the moves change the boards.
    """

    known: TrueRanks
    moves: npt.NDArray[np.uint8]
    after: npt.NDArray[np.uint8]
    reward: npt.NDArray[np.int64]
    changed: npt.NDArray[np.bool_]

    @cached_property
    def legal(self) -> npt.NDArray[np.uint8]:
        """The legal moves, uint8 [N]."""
        return legal_moves(self.known.ranks)


def played(batch: Batch) -> Played:
    """Play the recorded moves of whole runs."""
    known, moves = true_ranks(batch.rows, batch.run_starts()), playable(batch.rows)
    return Played(known, moves, *move(known.ranks, moves))


def counts_on(rows: Rows) -> npt.NDArray[np.bool_]:
    """Whether each row but the first is the next step of the run before it, as bool [N - 1]."""
    judged: npt.NDArray[np.bool_] = rows["run_id"][1:] == rows["run_id"][:-1]
    judged &= rows["step_index"][1:] == rows["step_index"][:-1] + np.uint32(1)
    return judged


def run_facts(
    batch: Batch, reward: npt.NDArray[np.int64]
) -> Iterator[tuple[int, slice, int, bool]]:
    """Facts of each run that has rows.

    reward: int64 [N], points of each row.

    Yields the index of the run in `StepStream.runs`, its rows in the batch, the sum of its
    points, and whether its step_index counts 0, 1, 2, ...
    """
    steps = batch.rows["step_index"]
    for at, (start, count) in enumerate(
        zip(batch.run_starts().tolist(), batch.counts.tolist(), strict=True)
    ):
        if count:
            own = slice(start, start + count)
            gapless = bool(np.array_equal(steps[own], np.arange(count, dtype=np.uint32)))
            yield batch.first_run + at, own, int(reward[own].sum()), gapless


def gaps_of(batch: Batch, runs: Sequence[Run], games: Played) -> Iterator[Gap]:
    """The gaps of whole runs."""
    rows, known = batch.rows, games.known
    wrong = broken(known, games.after, rows["run_id"][1:] == rows["run_id"][:-1])
    for at, own, points, _ in run_facts(batch, games.reward):
        run, steps, breaks = runs[at], rows["step_index"][own], np.flatnonzero(wrong[own])
        if len(breaks):
            yield Gap(run.id, int(steps[breaks[0]]), "board")
        elif not known.unknown[own].any():
            score = run.max_score if run.max_score >= 0 else run.max_score + (1 << 64)
            if lacks_points(known.ranks[own.start], points, score):
                yield Gap(run.id, int(steps[-1]), "score")
