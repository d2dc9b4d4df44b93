"""What laws and notes share: names of places, a limit on violations, and facts of runs.

See also `pack.py`, `pool.py`, `values.py` and `games.py`: the laws; `notes.py`: the notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.read.step_stream import Batch
from gristmill.macroxue.rules.moves import DIRECTIONS, move
from gristmill.macroxue.rules.true_ranks import TrueRanks, true_ranks


def place(row: np.void, number: int) -> str:
    """The name of a row in violations: run, step and row.

    row: a row of steps or values.
    number: of the row in the whole pack.
    """
    return f"run {row['run_id']} step {row['step_index']} (row {number})"


class Finder(Few):
    """The first violations of each law, of rows and runs."""

    def __init__(self) -> None:
        super().__init__("further places", "{more} more")

    def rows(
        self, law: str, batch: Batch, wrong: npt.NDArray[np.bool_], found: str
    ) -> Iterator[Violation]:
        """A violation for each wrong row.

        law: its name.
        batch: the rows.
        wrong: bool [N], which of them break the law.
        found: text with the placeholders {move} and the names of columns.
        """
        for at in self._first(law, wrong):
            row = batch.rows[at]
            columns = {name: row[name] for name in row.dtype.names}
            direction = int(row["move_dir"])
            move_name = DIRECTIONS[direction] if direction < 4 else f"move {direction}"
            yield Violation(
                law, place(row, batch.start + at), found.format(move=move_name, **columns)
            )

    def places(
        self, law: str, rows: Rows, start: int, wrong: npt.NDArray[np.bool_]
    ) -> Iterator[Violation]:
        """A violation for each wrong row, with the whole row as what was found.

        law: its name.
        rows: [N]. start: number of the first of them in the pack.
        wrong: bool [N], which of them break the law.
        """
        for at in self._first(law, wrong):
            yield Violation(law, place(rows[at], start + at), str(rows[at]))

    def _first(self, law: str, wrong: npt.NDArray[np.bool_]) -> list[int]:
        numbers: npt.NDArray[np.int64] = np.flatnonzero(wrong)
        return list(map(int, numbers[: self.take(law, len(numbers))]))

    def run(self, law: str, run_id: int, found: str) -> Iterator[Violation]:
        """A violation of a run.

        law: its name.
        run_id: of the run.
        found: what is there instead.
        """
        yield from self.at(law, f"run {run_id}", found)


def playable(rows: Rows) -> npt.NDArray[np.uint8]:
    """The recorded moves as uint8 [N], with 0 in place of a move above 3.

    Such moves are violations, and must not stop the other laws.
    """
    moves: npt.NDArray[np.uint8] = np.where(rows["move_dir"] < 4, rows["move_dir"], 0)
    return moves.astype(np.uint8)


class Played(NamedTuple):
    """The rows of a batch, and what their moves do.

    known: ranks of the boards.
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


def played(batch: Batch) -> Played:
    """Play the recorded moves of whole runs.

    batch: whole runs.
    """
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

    batch: whole runs.
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
