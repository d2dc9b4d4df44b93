"""What laws and notes share: names of places, and a limit on violations.

See also `pack.py`, `pool.py`, `values.py` and `games.py`: the laws; `notes.py`: the notes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.read.step_stream import Batch
from gristmill.macroxue.rules.moves import DIRECTIONS


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
