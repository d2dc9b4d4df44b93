"""A pack or pool and its values: rows by number for training, and columns for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill import provenance
from gristmill.contract import BadInput, Trace
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Source, identity_of, only
from gristmill.macroxue.format.files import DESCRIPTION, Run, read_runs, read_valuation_types
from gristmill.macroxue.format.rows import (
    STEP_ROW_DTYPE,
    VALUE_COLUMNS,
    Rows,
    decode_boards,
    open_steps,
    open_values,
    refuse_foreign_rows,
    step_files,
    value_files,
)
from gristmill.macroxue.read.stream import (
    Gather,
    Indices,
    RowSet,
    RunIds,
    check_database_size,
    check_tables,
    held_by_hash,
    held_by_permutation,
    queried,
    refuse_sharing,
)
from gristmill.macroxue.rules.game import TrueRanks, true_ranks
from gristmill.reading import StaleDataset
from gristmill.reading.folder import HeldFile, OpenFolder, Opening, Verify, made_from_another
from gristmill.reading.reader import Reader, located
from gristmill.reading.torch_batch import ColumnBatch

if TYPE_CHECKING:
    import pyarrow as pa

    from gristmill.exports.table import Split
    from gristmill.families import Request
    from gristmill.macroxue.read.torch_dataset import TorchSteps

__all__ = ["StaleDataset", "StepDataset"]

_COPIED = (
    *("run_id", "step_index", "board_eval", "move_dir", "valuation_type", "max_rank"),
    "branch_evs",
)


class Columns(NamedTuple):
    """The mapped rows of a pack, those of its sidecar, and its database."""

    steps: Gather
    values: Gather | None
    database: HeldFile


class StepDataset(Reader[Columns]):
    """A memory-mapped pack or pool, with random access to its rows.

    pack: folder with steps.npy or steps-*.npy in either layout, metadata.db, and
        valuation_types.json, without which `names` is None.
    values: folder of its value sidecar, joined row by row; default None, no sidecar.
    verify: how much is compared with the records: "none", "sizes" (the default) or "hash".

    run_table: rows of `runs` by ascending id.
    names: valuation names by id, or None.
    dtype: of the rows that `rows` returns.

    It belongs to the generation that it was opened on. A worker that loads its pickle maps the
    files again, and raises StaleDataset at its first read where pack or sidecar was rebuilt.

    `DataLoader(data, batch_size=4096, shuffle=True, num_workers=2)` yields what `as_torch` gives.

    Raises BadInput for a damaged file; for self-play v1 and legacy rows, naming their reader;
    where the first or last row of a run is not where metadata.db says; and where the sidecar has
    other shards, runs or steps than the pack, or was built from another version of it.
    """

    def __init__(
        self, pack: Path | str, values: Path | str | None = None, *, verify: Verify = "sizes"
    ) -> None:
        self.pack, self.values_folder = located(pack), located(values) if values else None
        self.run_table: list[Run] = []
        self.names: tuple[str, ...] | None = None
        self.dtype: np.dtype[Any] = STEP_ROW_DTYPE
        self._counting: dict[int, bool] = {}
        self.start(verify)
        self._place = {run.id: at for at, run in enumerate(self.run_table)}
        self._ends = np.cumsum([run.steps for run in self.run_table], dtype=np.int64)
        self._length = len(self.held.steps)

    def open_files(self, opening: Opening) -> Columns:
        """Map the rows and hold the database; at the first opening also read the tables."""
        pack = opening.folder(self.pack)
        steps, values = _steps_of(pack), None
        database = pack.keep("metadata.db")
        check_database_size(database)
        if self.values_folder is not None:
            sidecar = opening.folder(self.values_folder)
            values = _values_of(sidecar, pack, steps)
        if opening.first:
            self.dtype = steps.dtype
            self.run_table = read_runs(pack.inside / "metadata.db")
            if pack.has("valuation_types.json"):
                self.names = read_valuation_types(pack.file("valuation_types.json"))
            check_tables(pack.path, self.run_table, steps, self.values_folder, values)
        return Columns(steps, values, database)

    def __len__(self) -> int:
        """Number of rows."""
        return self._length

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One step as tensors, as `as_torch()[number]`: a negative number counts from the end."""
        return self.as_torch()[number]

    def __getitems__(self, numbers: Sequence[int]) -> ColumnBatch:
        """Steps by number as one batch, as `as_torch()`; a data loader of torch calls it."""
        return self.as_torch().__getitems__(numbers)

    def rows(self, indices: Indices) -> Rows:
        """Rows [N] of `dtype`, as a new array.

        indices: row numbers [N] in the pack from 0, in any order.

        Raises IndexError for a number outside the pack, TypeError for anything but integers.
        """
        return self.held.steps.rows(indices)

    def values(self, indices: Indices) -> Rows:
        """Rows [N] of the value sidecar (VALUE_ROW_DTYPE), as a new array.

        indices: row numbers [N] in the pack from 0, in any order.

        Raises as `rows`, and ValueError if no sidecar is joined.
        """
        if self.held.values is None:
            raise ValueError("no value sidecar is joined: StepDataset(pack, values=folder)")
        return self.held.values.rows(indices)

    def run_bounds(self, run_id: int) -> tuple[int, int]:
        """The first row of a run and the row behind its last; KeyError if there is no such run."""
        place = self._place[run_id]
        end = int(self._ends[place])
        return end - self.run_table[place].steps, end

    def row_of(self, run_id: int, step_index: int) -> int:
        """The first row of a run that has this step_index; KeyError if there is no run or step."""
        first, stop = self.run_bounds(run_id)
        # The steps of a whole game are 0, 1, 2, ..., so only other runs need a search. All rows
        # must be read, once: in 0, 2, 2, 3 only one row differs from 0, 1, 2, 3.
        if run_id not in self._counting:
            column = self._steps(run_id)
            self._counting[run_id] = bool(np.array_equal(column, np.arange(len(column))))
        if self._counting[run_id] and 0 <= step_index < stop - first:
            return first + step_index
        for place in np.flatnonzero(self._steps(run_id) == step_index).tolist():
            return first + int(place)
        raise KeyError(f"run {run_id} has no step {step_index}")

    def _steps(self, run_id: int) -> npt.NDArray[np.uint32]:
        return self.rows(np.arange(*self.run_bounds(run_id)))["step_index"]

    def boards(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """The ranks of step rows [N] as uint8 [N, 16], row by row; 16 means 65536 or more."""
        return decode_boards(rows["board"], rows["tile_65536_mask"])

    def run_ranks(self, run_id: int) -> TrueRanks:
        """The true ranks of the rows of a run; KeyError if there is no such run."""
        rows = self.rows(np.arange(*self.run_bounds(run_id)))
        return true_ranks(rows, np.zeros(1, np.int64))

    def batch(self, indices: Indices) -> dict[str, npt.NDArray[Any]]:
        """The columns of rows by name, each a contiguous array.

        indices: row numbers [N] in the pack from 0, in any order.

        Returns ranks uint8 [N, 16]; move_dir, valuation_type, max_rank uint8 [N]; run_id,
        step_index uint32 [N]; board_eval int32 [N]; branch_evs float32 [N, 4] and ev_legal bool
        [N, 4] in the order up, down, left, right. With a sidecar also reward, reward_scaled,
        return_raw, return_scaled float32 [N]. Raises as `rows`.
        """
        rows = self.rows(indices)
        columns: dict[str, npt.NDArray[Any]] = {"ranks": self.boards(rows)}
        for name in _COPIED:
            columns[name] = np.ascontiguousarray(rows[name])
        bits = np.arange(4, dtype=np.uint8)
        columns["ev_legal"] = ((rows["ev_legal"][:, None] >> bits) & 1).astype(np.bool_)
        if self.values_folder is not None:
            valued = self.values(indices)
            for name in VALUE_COLUMNS:
                columns[name] = np.ascontiguousarray(valued[name])
        return columns

    def runs(self, sql: str, params: Sequence[Any] = ()) -> RunIds:
        """The run ids in the first column of a query as uint32 [R], ascending, each once.

        sql: one SELECT, as in "SELECT id FROM runs WHERE max_score > ?".
        params: values of its placeholders; default none.

        Raises sqlite3.DatabaseError for a statement that writes, ValueError for a value that is
        no run id.
        """
        with self.held.database.reading() as path:
            octets = path.read_bytes()
        return queried(octets, self.held.database.path, self._place, sql, params)

    def rows_of(self, run_ids: npt.NDArray[np.integer[Any]] | Sequence[int]) -> RowSet:
        """The rows of some runs, in the order of the pack.

        run_ids: integers [R] in any order; KeyError for one that is not a run.
        """
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

        held_out: fraction of the runs, 0 to 1.
        by: "hash" (default): the side depends on the game alone and is the same in each pool.
            "permutation": ceil(held_out * runs) runs of a PCG64 permutation.
        seed: of the hash or the permutation; default 42.
        among: run ids to split; default None, all runs.

        Raises ValueError for another fraction or mode.
        """
        if not 0 <= held_out <= 1:
            raise ValueError(f"held_out must be a fraction of 0 to 1, not {held_out}")
        if by not in ("hash", "permutation"):
            raise ValueError(f"by must be 'hash' or 'permutation', not {by!r}")
        runs = self.run_table
        if among is not None:
            chosen = {int(run_id) for run_id in among}
            runs = [run for run in runs if run.id in chosen]
        held = (held_by_hash if by == "hash" else held_by_permutation)(runs, held_out, seed)
        ids = np.array([run.id for run in runs], np.uint32)
        return self.rows_of(np.setdiff1d(ids, held)), self.rows_of(held)

    def split_by_sql(
        self, train: str, held_out: str, params: Sequence[Any] = ()
    ) -> tuple[RowSet, RowSet]:
        """Rows to train on and rows held out, by two queries over `runs`.

        train, held_out: SELECT statements, as in `runs`.
        params: values of the placeholders of both; default none.

        Raises as `runs`, and ValueError where a run or game is on both sides.
        """
        sides = self.runs(train, params), self.runs(held_out, params)
        refuse_sharing(self.run_table, *sides)
        return self.rows_of(sides[0]), self.rows_of(sides[1])

    def source(self, rows: RowSet | None = None) -> Source:
        """These rows (default None: all) by number, for `gristmill.loading`.

        Raises ValueError for rows of another dataset, GristmillError for files without a record.
        """
        from gristmill.loading.source import Picked

        own = StepSource(self)
        if rows is None:
            return own
        self._refuse_rows_of_another(rows)
        return Picked(own, *rows.ranges())

    def as_torch(self, rows: RowSet | None = None) -> TorchSteps:
        """These rows as a torch Dataset (default None: all rows); needs torch.

        Raises ValueError for rows of another dataset.
        """
        from gristmill.macroxue.read.torch_dataset import TorchSteps

        if rows is not None:
            self._refuse_rows_of_another(rows)
        return TorchSteps(self, rows)

    def _refuse_rows_of_another(self, rows: RowSet) -> None:
        """Raise ValueError where a set has other rows than its runs have here."""
        bounds = [self.run_bounds(run) for run in rows.run_ids.tolist() if run in self._place]
        firsts, stops = np.array(bounds, np.int64).reshape(-1, 2).T
        ends = np.cumsum(stops - firsts)
        is_own = len(rows) == int(ends.max(initial=0))
        if is_own:
            first_rows = rows.rows(ends - (stops - firsts))
            last_rows = rows.rows(ends - 1)
            is_own = np.array_equal(first_rows, firsts) and np.array_equal(last_rows, stops - 1)
        if not is_own:
            raise ValueError(
                f"these {len(rows)} rows of {len(rows.run_ids)} runs are of another dataset, and"
                f" not those of {self.pack}: take rows of this dataset, by split or rows_of"
            )


class StepSource:
    """Rows by number, with the columns of `StepDataset.batch`; `game_bounds` are those of the runs.

    The identity does not have the version of the sidecar: its rows have the numbers of the pack's.
    """

    def __init__(self, data: StepDataset) -> None:
        self._data = data
        # A pool has rows of the same form; data versions tell them apart.
        self.identity = identity_of("macroxue/pack", data.generations[:1])
        self.cuts: Numbers = np.array([0, len(data)], np.int64)

    @property
    def game_bounds(self) -> Numbers:
        """The first row of each run that has rows, and the number of all, for `Grouped`."""
        steps = np.array([run.steps for run in self._data.run_table if run.steps], np.int64)
        return np.append(0, np.cumsum(steps))

    def read(self, numbers: Numbers) -> dict[str, npt.NDArray[Any]]:
        """The columns of rows [N]."""
        return self._data.batch(numbers)

    def shown(self, number: int) -> Iterator[Request]:
        """The row."""
        from gristmill.families import Request

        yield Request(self._data.generations[0].folder, str(number))

    def origin(self, number: int) -> Iterator[Trace]:
        """The run of a row, and its line in the raw file."""
        from gristmill.macroxue.read.trace import row_origins

        return row_origins(self._data.generations[0].folder, number)


def _steps_of(pack: OpenFolder) -> Gather:
    """The rows of all steps files of a pack or pool."""
    maps: list[Rows] = []
    for found in step_files(pack.inside):
        file = pack.file(found.name)
        refuse_foreign_rows(file)
        maps.append(open_steps(file))
        if maps[-1].dtype != maps[0].dtype:
            rule = "has another row layout than the first file: pack or merge again"
            raise BadInput(pack.path / found.name, rule)
    return Gather(maps)


def _values_of(sidecar: OpenFolder, pack: OpenFolder, steps: Gather) -> Gather:
    """The rows of all files of a value sidecar, which was built from this version of the pack."""
    if made_from_another(sidecar, pack):
        rule = f"was built from another version of {pack.path}: build the sidecar again"
        raise BadInput(sidecar.path, rule)
    files = value_files(sidecar.inside)
    values = Gather([open_values(sidecar.file(file.name)) for file in files])
    if values.counts != steps.counts:
        rule = f"has shards of {values.counts} rows, the pack of {steps.counts}: build the sidecar"
        raise BadInput(sidecar.path, f"{rule} of this pack")
    return values


def opened(
    folders: Sequence[Path],
    *,
    held_out: float = 0.0,
    side: Literal["train", "held_out"] = "train",
    by: Literal["hash", "permutation"] = "hash",
    seed: int = 42,
) -> Source:
    """A pack or pool as a source.

    folders: one. held_out, by, seed: as `StepDataset.split`; default: all rows.

    Raises GristmillError for several folders, and as `StepDataset`.
    """
    data = StepDataset(only(folders))
    if not held_out:
        return data.source()
    return data.source(data.split(held_out, by=by, seed=seed)[side == "held_out"])


_RETURNS: Final = ("reward", "return_raw", "return_scaled")
_ROWS: Final = 1 << 19
_CACHED: Final = 1 << 13
"""Rows that stay in the cache of a core while their fields are taken one after another."""


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the rows of a pack or pool, or of the sides of a view; of values those of their pack.

    Where values lie beside the rows, these have them.
    """
    if asset == "macroxue/values":
        yield _split("train", _pack(folder), folder)
    elif asset == "macroxue/training_view":
        for side in json.loads((folder / DESCRIPTION).read_bytes())["sides"]:
            values = folder / side if [*(folder / side).glob("values*.npy")] else None
            yield _split(side or "train", folder / side, values)
    else:
        yield _split("train", folder, None)


def _split(name: str, steps: Path, values: Path | None) -> Split:
    """A split of rows. values: the folder with their values, None where these are none."""
    import pyarrow as pa

    from gristmill.exports.table import Batches, Split, list_of, required

    types = {
        name: list_of(pa.float32(), 4)
        if name == "branch_evs"
        else pa.from_numpy_dtype(STEP_ROW_DTYPE[name])
        for name in STEP_ROW_DTYPE.names or ()
    }
    schema = required(types | dict.fromkeys(_RETURNS if values else (), pa.float32()))

    def batches() -> Batches:
        files = map(open_steps, step_files(steps))
        sidecars = map(open_values, value_files(values)) if values else None
        for rows in files:
            beside = None if sidecars is None else next(sidecars)
            if beside is not None and len(beside) != len(rows):
                raise BadInput(values or steps, "has other rows than its pack: build it again")
            for first in range(0, len(rows), _ROWS):
                part = slice(first, first + _ROWS)
                yield _batch(schema, [rows[part]] + ([] if beside is None else [beside[part]]))

    return Split(name, lambda: schema, batches)


def _pack(folder: Path) -> Path:
    """The pack of a value sidecar, beside it in the data root."""
    record = provenance.read_record(folder / provenance.RECORD)
    root = folder.absolute().parents[len(Path(record.artifact).parts) - 1]
    pack = root / str(record.inputs[0].path)
    if not pack.is_dir():
        raise BadInput(pack, "is not here: the values are rows of this pack")
    return pack


def _batch(schema: pa.Schema, sources: Sequence[Rows]) -> pa.RecordBatch:
    import pyarrow as pa

    fields: dict[str, Rows] = {}
    for source in reversed(sources):
        fields |= {name: source[name] for name in source.dtype.names or ()}
    values = {item.name: np.empty_like(fields[item.name], order="C") for item in schema}
    for first in range(0, len(sources[0]), _CACHED):
        part = slice(first, first + _CACHED)
        for name, column in values.items():
            column[part] = fields[name][part]
    columns = []
    for item in schema:
        column = pa.array(values[item.name].reshape(-1))
        is_list = values[item.name].ndim > 1
        columns.append(
            pa.FixedSizeListArray.from_arrays(column, type=item.type) if is_list else column
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema)
