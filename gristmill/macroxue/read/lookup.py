"""Single steps of a pack, by row or by run and step, for views and the command line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.format.metadata_db import Run, read_runs
from gristmill.macroxue.format.rows import Rows, decode_boards
from gristmill.macroxue.format.shards import open_steps, refuse_foreign_rows, step_files
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.rules.moves import legal_moves
from gristmill.macroxue.rules.true_ranks import TrueRanks, true_ranks


@dataclass(frozen=True)
class PackedStep:
    """One row of a pack in Python numbers.

    ranks: 16 ranks, row by row; true ranks where they are known, else at most 16.
    legal: the bits of ev_legal whose moves change the board; tuple rows store all four bits.
    """

    row: int
    run: Run
    step_index: int
    ranks: tuple[int, ...]
    move: int
    evs: tuple[float, ...]
    ev_legal: int
    legal: int
    valuation: str
    board_eval: int


class PackRows:
    """The rows of a pack or pool, read one by one, without a look at its table of runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = step_files(path)
        for file in self._files:
            refuse_foreign_rows(file)
        self._shards = [open_steps(file) for file in self._files]
        self._starts = [0, *accumulate(len(shard) for shard in self._shards)]

    def __len__(self) -> int:
        return self._starts[-1]

    def _row(self, row: int) -> tuple[Path, Rows]:
        if not 0 <= row < len(self):
            raise GristmillError(f"{self.path} has rows 0 to {len(self) - 1}, not {row}")
        shard = bisect_right(self._starts, row) - 1
        within = row - self._starts[shard]
        return self._files[shard], self._shards[shard][within : within + 1]

    def place(self, row: int) -> tuple[int, int]:
        """The run id and the step_index of a row, from 0; GristmillError for one outside."""
        _, rows = self._row(row)
        return int(rows["run_id"][0]), int(rows["step_index"][0])

    def find_row(self, run: int, first: int, count: int, step_index: int) -> int:
        """The first row of a run that has this step_index."""
        places = np.flatnonzero(self._between(first, first + count)["step_index"] == step_index)
        if not len(places):
            raise GristmillError(f"run {run} of {self.path} has no step {step_index}")
        return first + int(places[0])

    def _between(self, first: int, stop: int) -> Rows:
        """The rows from `first` up to `stop`, not included, as a copy."""
        parts = [
            shard[max(0, first - start) : max(0, stop - start)]
            for start, shard in zip(self._starts, self._shards, strict=False)
            if start < stop and first < start + len(shard)
        ]
        return np.concatenate(parts) if parts else self._shards[0][:0]


class Pack(PackRows):
    """A pack or pool whose steps are read one by one.

    Raises BadInput where one of these files is missing or damaged, where their counts differ,
    and for foreign rows, naming their reader.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.runs = read_runs(path / "metadata.db")
        self._by_id = {run.id: run for run in self.runs}
        self._first = dict(
            zip(self._by_id, [0, *accumulate(run.steps for run in self.runs)], strict=False)
        )
        self._ranks_of_runs: dict[int, TrueRanks] = {}
        self._names = read_valuation_types(path / "valuation_types.json")
        steps = sum(run.steps for run in self.runs)
        if steps != len(self):
            raise BadInput(
                path / "metadata.db",
                f"runs have {steps} steps, but the files have {len(self)} rows",
            )

    def run(self, run: int) -> Run:
        """The row of `runs` with this id; GristmillError if there is no such run."""
        if run not in self._by_id:
            raise GristmillError(f"{self.path} has no run {run}; it has {len(self.runs)} runs")
        return self._by_id[run]

    def first_row(self, run: int) -> int:
        """The number of the first row of a run; GristmillError if there is no such run."""
        return self._first[self.run(run).id]

    def find(self, run: int, step_index: int) -> PackedStep:
        """The first step of a run that has this step_index.

        Raises GristmillError if there is no such run or step, and as `step`.
        """
        return self.step(self.find_row(run, self.first_row(run), self.run(run).steps, step_index))

    def step(self, row: int) -> PackedStep:
        """The step in a row of the pack.

        row: from 0.

        Raises GristmillError for a row outside the pack, and BadInput where its run or
        valuation type has no name in the tables.
        """
        file, rows = self._row(row)
        run, kind = int(rows["run_id"][0]), int(rows["valuation_type"][0])
        if run not in self._by_id:
            raise BadInput(file, f"run_id {run} is not in metadata.db", row + 1)
        if kind >= len(self._names):
            raise BadInput(file, f"valuation_type {kind} is not in valuation_types.json", row + 1)
        stored = int(rows["ev_legal"][0])
        ranks = self._ranks(run, row, rows)
        return PackedStep(
            row=row,
            run=self._by_id[run],
            step_index=int(rows["step_index"][0]),
            ranks=tuple(ranks[0].tolist()),
            move=int(rows["move_dir"][0]),
            evs=tuple(np.asarray(rows["branch_evs"][0], np.float64).tolist()),
            ev_legal=stored,
            legal=stored & int(legal_moves(ranks)[0]),
            valuation=self._names[kind],
            board_eval=int(rows["board_eval"][0]),
        )

    def _ranks(self, run: int, row: int, rows: Rows) -> npt.NDArray[np.uint8]:
        """Ranks uint8 [1, 16] of a row: true ranks where they are known, else capped at 16."""
        capped: npt.NDArray[np.uint8] = decode_boards(rows["board"], rows["tile_65536_mask"])
        if not rows["tile_65536_mask"][0]:
            return capped
        if run not in self._ranks_of_runs:
            first = self._first[run]
            rows_of_run = self._between(first, first + self._by_id[run].steps)
            self._ranks_of_runs[run] = true_ranks(rows_of_run, np.zeros(1, np.int64))
        known, within = self._ranks_of_runs[run], row - self._first[run]
        return capped if known.unknown[within] else known.ranks[within : within + 1]

    def run_steps(self, run: int, count: int) -> list[PackedStep]:
        """Steps of a run at even distances, from its first to its last."""
        first = self.first_row(run)
        last = self._by_id[run].steps - 1
        places = {round(last * k / max(1, count - 1)) for k in range(count if last >= 0 else 0)}
        return self.steps(first + place for place in sorted(places))

    def steps(self, rows: Iterable[int]) -> list[PackedStep]:
        """The steps in several rows, in their order; raises as `step`."""
        return [self.step(row) for row in rows]
