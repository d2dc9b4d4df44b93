"""What training imports: a pack, pool and value sidecar as rows read at random.

Splitting runs stands in `splits.py`, the torch form in `torch_view.py`; walking
through a whole pack is the business of `stream.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.foreign_packs import refuse_other_forms
from gristmill.macroxue.format.metadata_db import Run, read_runs
from gristmill.macroxue.format.rows import Rows, decode_boards
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.read.gather import Gather, Indices
from gristmill.macroxue.read.splits import (
    RowSet,
    RunIds,
    held_by_hash,
    held_by_permutation,
    refuse_sharing,
)
from gristmill.macroxue.rules.true_ranks import TrueRanks, true_ranks

if TYPE_CHECKING:
    from gristmill.macroxue.read.torch_dataset import TorchSteps

# What a query may do: read. The connection is read-only, but ATTACH would write elsewhere.
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


class StepDataset:
    """A pack or pool, memory-mapped, with random access to its steps (docs/formats/macroxue.md#foreign-packs).

    pack: folder with steps.npy or steps-*.npy in either layout, metadata.db and
        valuation_types.json (without which `names` is None and ids mean nothing).
    values: folder of its value sidecar, joined row by row.

    run_table: rows of `runs` by id. names: valuation names by id. dtype: that of
    `rows`. Pickles as paths and run table; a worker that unpickles it maps the
    files anew, so nothing is copied.

    Raises BadInput for self-play v1 and legacy pools, naming their reader; where
    the first or last row of a run is not where metadata.db says; and where the
    sidecar has other shards, runs or steps than the pack.
    """

    def __init__(self, pack: Path, values: Path | None = None) -> None:
        self.pack, self.values_folder = Path(pack), Path(values) if values else None
        self._map()
        self.run_table: list[Run] = read_runs(self.pack / "metadata.db")
        enum = self.pack / "valuation_types.json"
        self.names = read_valuation_types(enum) if enum.exists() else None
        self._place = {run.id: at for at, run in enumerate(self.run_table)}
        self._ends = np.cumsum([run.steps for run in self.run_table], dtype=np.int64)
        self._counting: dict[int, bool] = {}
        self._check_runs()

    def _map(self) -> None:
        files = step_files(self.pack)
        for file in files:
            refuse_other_forms(file)
        maps = [open_steps(file) for file in files]
        for file, rows in zip(files, maps, strict=True):
            if rows.dtype != maps[0].dtype:
                raise BadInput(
                    file, f"has another row layout than {files[0].name}: pack or merge anew"
                )
        self._steps = Gather(maps)
        self.dtype = self._steps.dtype
        self._values: Gather | None = None
        if self.values_folder is not None:
            self._values = Gather([open_values(f) for f in value_files(self.values_folder)])
            if self._values.counts != self._steps.counts:
                raise BadInput(
                    self.values_folder,
                    f"has shards of {self._values.counts} rows, the pack of {self._steps.counts}:"
                    " make the sidecar of this very pack",
                )

    def _check_runs(self) -> None:
        total = int(self._ends[-1]) if len(self._ends) else 0
        if total != len(self):
            raise BadInput(
                self.pack, f"metadata.db counts {total} steps, the files have {len(self)}"
            )
        steps = np.array([run.steps for run in self.run_table], np.int64)
        ids = np.array([run.id for run in self.run_table], np.int64)[steps > 0]
        ends = self._ends[steps > 0]
        edges = np.concatenate([ends - steps[steps > 0], ends - 1])
        found = self._steps.rows(edges)
        wrong = np.flatnonzero(found["run_id"] != np.concatenate([ids, ids]))
        if len(wrong):
            at = int(wrong[0])
            raise BadInput(
                self.pack,
                f"row {int(edges[at])} is of run {int(found['run_id'][at])}, where metadata.db"
                f" puts run {int(np.concatenate([ids, ids])[at])}",
            )
        if self._values is None:
            return
        valued = self._values.rows(edges)
        for column in ("run_id", "step_index"):
            wrong = np.flatnonzero(valued[column] != found[column])
            if len(wrong):
                row = int(edges[int(wrong[0])])
                raise BadInput(
                    str(self.values_folder), f"row {row} has another {column} than the pack"
                )

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_steps"], state["_values"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._map()

    def __len__(self) -> int:
        """Rows of the pack."""
        return len(self._steps)

    def rows(self, indices: Indices) -> Rows:
        """Step rows [N] as a new array, for global row numbers [N] in any order."""
        return self._steps.rows(indices)

    def values(self, indices: Indices) -> Rows:
        """Rows [N] of the value sidecar (VALUE_ROW_DTYPE); ValueError where none is joined."""
        if self._values is None:
            raise ValueError("no value sidecar is joined: StepDataset(pack, values=folder)")
        return self._values.rows(indices)

    def run_bounds(self, run_id: int) -> tuple[int, int]:
        """First row of a run and the row behind its last. KeyError where there is no such run."""
        place = self._place[run_id]
        end = int(self._ends[place])
        return end - self.run_table[place].steps, end

    def row_of(self, run_id: int, step_index: int) -> int:
        """Global number of the row of a run that has this step_index, the first of several.

        KeyError where there is no such run or step.
        """
        first, stop = self.run_bounds(run_id)
        # Whole games count 0, 1, 2, ...; only others have to be searched.
        if self._counts_up(run_id) and 0 <= step_index < stop - first:
            return first + step_index
        column = self.rows(np.arange(first, stop))["step_index"]
        places = np.flatnonzero(column == step_index)
        if not len(places):
            raise KeyError(f"run {run_id} has no step {step_index}")
        return first + int(places[0])

    def _counts_up(self, run_id: int) -> bool:
        """Whether the rows of a run have the steps 0, 1, 2, ...; read once for each run.

        A few rows cannot tell: in 0, 2, 2, 3 all but one stand where they would.
        """
        if run_id not in self._counting:
            first, stop = self.run_bounds(run_id)
            column = self.rows(np.arange(first, stop))["step_index"]
            self._counting[run_id] = bool(np.array_equal(column, np.arange(stop - first)))
        return self._counting[run_id]

    def boards(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Ranks uint8 [N, 16] of step rows [N], row-major, 0 empty; 16 means 65536 or more."""
        return decode_boards(rows["board"], rows["tile_65536_mask"])

    def run_ranks(self, run_id: int) -> TrueRanks:
        """Ranks of a run's rows with tiles above 65536 told apart, as far as they can be."""
        rows = self.rows(np.arange(*self.run_bounds(run_id)))
        return true_ranks(rows, np.zeros(1, np.int64))

    def batch(self, indices: Indices) -> dict[str, npt.NDArray[Any]]:
        """Columns of rows by name, boards decoded, each a contiguous array with N in front.

        ranks uint8 [N, 16]; move_dir, valuation_type, max_rank uint8 [N]; run_id,
        step_index uint32 [N]; board_eval int32 [N]; branch_evs float32 [N, 4] and
        ev_legal bool [N, 4] in the order up, down, left, right; and with a sidecar
        reward, reward_scaled, return_raw, return_scaled float32 [N].
        """
        rows = self.rows(indices)
        columns: dict[str, npt.NDArray[Any]] = {"ranks": self.boards(rows)}
        for name in ("run_id", "step_index", "board_eval", "move_dir", "valuation_type"):
            columns[name] = np.ascontiguousarray(rows[name])
        columns["max_rank"] = np.ascontiguousarray(rows["max_rank"])
        columns["branch_evs"] = np.ascontiguousarray(rows["branch_evs"])
        bits = np.arange(4, dtype=np.uint8)
        columns["ev_legal"] = ((rows["ev_legal"][:, None] >> bits) & 1).astype(np.bool_)
        if self._values is not None:
            valued = self._values.rows(indices)
            for name in ("reward", "reward_scaled", "return_raw", "return_scaled"):
                columns[name] = np.ascontiguousarray(valued[name])
        return columns

    def runs(self, sql: str, params: Sequence[Any] = ()) -> RunIds:
        """Run ids that a query gives in its first column, ascending, each once.

        As in "SELECT id FROM runs WHERE max_score > ?". The database can only be
        read: sqlite3.DatabaseError for anything else. ValueError for an id that
        is no run.
        """
        uri = f"{(self.pack / 'metadata.db').absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            db.set_authorizer(_authorize)
            found = {row[0] for row in db.execute(sql, params)}
        if strangers := [value for value in found if value not in self._place]:
            raise ValueError(f"the query gives {strangers[0]!r}, which is no id of a run")
        return np.array(sorted(found), np.uint32)

    def rows_of(self, run_ids: npt.NDArray[np.integer[Any]] | Sequence[int]) -> RowSet:
        """The rows of these runs as a set, runs in the order of the pack."""
        ids = np.unique(np.asarray(run_ids, np.uint32))
        bounds = [self.run_bounds(int(run_id)) for run_id in ids]
        return RowSet(ids, [a for a, _ in bounds], [b - a for a, b in bounds])

    def split(
        self,
        held_out: float,
        *,
        by: Literal["hash", "permutation"] = "hash",
        seed: int = 42,
        among: npt.NDArray[np.integer[Any]] | None = None,
    ) -> tuple[RowSet, RowSet]:
        """Rows to train on and rows held out; no game is on both sides.

        held_out: share of the runs. by: "hash" gives every game its side by its own
        facts, the same in every pool that holds it; "permutation" takes
        ceil(held_out * runs) of a PCG64 permutation. among: only these run ids.
        """
        if not 0 <= held_out <= 1:
            raise ValueError(f"held_out is a share of 0 to 1, not {held_out}")
        if by not in ("hash", "permutation"):
            raise ValueError(f"by must be 'hash' or 'permutation', not {by!r}")
        runs = self.run_table
        if among is not None:
            chosen = {int(run_id) for run_id in among}
            runs = [run for run in runs if run.id in chosen]
        held = (held_by_hash if by == "hash" else held_by_permutation)(runs, held_out, seed)
        everything = np.array([run.id for run in runs], np.uint32)
        return self.rows_of(np.setdiff1d(everything, held)), self.rows_of(held)

    def split_by_sql(
        self, train: str, held_out: str, params: Sequence[Any] = ()
    ) -> tuple[RowSet, RowSet]:
        """Rows of the runs of two queries; ValueError where they share a run or a game."""
        sides = self.runs(train, params), self.runs(held_out, params)
        refuse_sharing(self.run_table, *sides)
        return self.rows_of(sides[0]), self.rows_of(sides[1])

    def as_torch(self, rows: RowSet | None = None) -> TorchSteps:
        """These rows (None: all) as a torch Dataset; needs torch."""
        from gristmill.macroxue.read.torch_dataset import TorchSteps

        return TorchSteps(self, rows)
