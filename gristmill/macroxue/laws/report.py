"""How laws and notes look at rows and stretches of runs and name what they find.

The laws stand in `laws.py` and `game_laws.py`, the notes in `game_notes.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.read.step_stream import StepStream, Stretch
from gristmill.macroxue.rules.moves import DIRECTIONS

SHOWN = 5
"""Places named for each law; the rest is counted."""


def place(row: np.void, number: int) -> str:
    """How every law names a row: its run and step, and its number in the whole pack."""
    return f"run {row['run_id']} step {row['step_index']} (row {number})"


class Finder:
    """Names the first rows that break a law and counts the others."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def rows(
        self, law: str, stretch: Stretch, wrong: npt.NDArray[np.bool_], found: str
    ) -> Iterator[Violation]:
        """A violation for each row that is wrong; `found` may use {move} and columns of rows."""
        for at in np.flatnonzero(wrong).tolist():
            self.counts[law] += 1
            if self.counts[law] > SHOWN:
                self.counts[law] += int(np.count_nonzero(wrong[at + 1 :]))
                return
            row = stretch.rows[at]
            columns = {name: row[name] for name in row.dtype.names}
            direction = int(row["move_dir"])
            move_name = DIRECTIONS[direction] if direction < 4 else f"move {direction}"
            yield Violation(
                law, place(row, stretch.start + at), found.format(move=move_name, **columns)
            )

    def run(self, law: str, run_id: int, found: str) -> Iterator[Violation]:
        """A violation of a whole run."""
        self.counts[law] += 1
        if self.counts[law] <= SHOWN:
            yield Violation(law, f"run {run_id}", found)

    def rest(self) -> Iterator[Violation]:
        """What was found beyond the places named."""
        for law, count in self.counts.items():
            if count > SHOWN:
                yield Violation(law, "further places", f"{count - SHOWN} more")


def playable(rows: Rows) -> npt.NDArray[np.uint8]:
    """Moves with those above 3 made 0: they are reported, and must not stop the rest."""
    moves: npt.NDArray[np.uint8] = np.where(rows["move_dir"] < 4, rows["move_dir"], 0)
    return moves.astype(np.uint8)


def fresh(board: npt.NDArray[np.uint8]) -> bool:
    """Whether a board [16] is that of a new game: two tiles of rank 1 or 2."""
    return np.count_nonzero(board) == 2 and int(board.max()) <= 2


def run_facts(
    stream: StepStream, stretch: Stretch, reward: npt.NDArray[np.int64]
) -> Iterator[tuple[int, slice, int, bool]]:
    """(place of the run, its rows in the stretch, its points, steps count 0, 1, 2, ...)."""
    steps = stretch.rows["step_index"]
    for at, (start, count) in enumerate(
        zip(stretch.run_starts().tolist(), stretch.counts.tolist(), strict=True)
    ):
        if count:
            own = slice(start, start + count)
            gapless = bool(np.array_equal(steps[own], np.arange(count, dtype=np.uint32)))
            yield stretch.first_run + at, own, int(reward[own].sum()), gapless
