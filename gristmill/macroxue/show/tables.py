"""The tables of rows in packs, pools, value sidecars and views, and the boards of their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.browse.columns import Columns, of_arrays, of_values
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture
from gristmill.macroxue.format.metadata_db import read_gaps, read_runs
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, VALUE_ROW_DTYPE, Rows, decode_boards
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.format.view_files import DESCRIPTION, read_description
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.moves import DIRECTIONS
from gristmill.macroxue.rules.true_ranks import TrueRanks, true_ranks
from gristmill.macroxue.show.board import board_svg, board_text
from gristmill.printable import cut, printable

if TYPE_CHECKING:
    from rich.text import Text

    from gristmill.browse.opening import Files

_ARROWS = "↑↓←→"


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield the tables of a pack, a pool, a value sidecar or a view, the main one first."""
    if asset == "macroxue/values":
        read = partial(_arrays, files, "", value_files, open_values, VALUE_ROW_DTYPE)
        terms = {"run": "run_id", "step": "step_index"}
        yield Stored("values", read, sample=lambda row: (str(row.number), {}), terms=terms)
        return
    sides = read_description(folder).sides if asset == "macroxue/training_view" else ("",)
    for side in sides:
        yield from _of_side(folder / side, files, side)
    for side in sides:
        if read_gaps(folder / side / "metadata.db"):  # a table without rows has nothing to show
            yield _of_runs(files, side, "gaps", read_gaps, "run_id")


def _of_side(folder: Path, files: Files, side: str) -> Iterator[Stored]:
    """The steps and the runs of a pack, or of one side of a view; "" for a folder without sides."""
    within = f"{side}/" if side else ""
    ranks_of = _ranks(folder)
    yield Stored(
        f"{within}steps",
        partial(_arrays, files, within, step_files, open_steps, STEP_ROW_DTYPE),
        searchable=("board",),
        sample=lambda row: _run(side, "run_id", row, step=row.values["step_index"]),
        pictures=lambda row: [
            Picture(f"step {row.number:,}", board_svg(_title(row), ranks_of(row.number)))
        ],
        chosen=_chosen(side),
        terms={"run": "run_id", "step": "step_index"},
        drawn=lambda row, _: [_heading(folder, row), board_text(ranks_of(row.number))],
    )
    yield _of_runs(files, side, "runs", read_runs, "id", searchable=("seed",))


def _of_runs(
    files: Files,
    side: str,
    name: str,
    read: Callable[[Path], Sequence[object]],
    column: str,
    **more: Any,
) -> Stored:
    """A table of metadata.db, whose rows name their run in a column."""
    within = f"{side}/" if side else ""

    def rows() -> Columns:
        path = files.checked(f"{within}metadata.db")
        return of_values(path, [vars(row) for row in read(path)])

    return Stored(
        f"{within}{name}",
        rows,
        sample=partial(_run, side, column),
        chosen=_chosen(side),
        terms={"run": column},
        **more,
    )


def _chosen(side: str) -> Mapping[str, str]:
    return {"split": side} if side else {}


def _run(side: str, column: str, row: Record, **more: Any) -> tuple[str, Mapping[str, Any]]:
    """What `gristmill trace` takes for a row that names its run in a column."""
    return str(row.values[column]), {**more, **_chosen(side)}


def _arrays(
    files: Files,
    within: str,
    find: Callable[[Path], list[Path]],
    open_rows: Callable[[Path], Rows],
    dtype: np.dtype[Any],
) -> Columns:
    paths = [files.checked(f"{within}{path.name}") for path in find(files.folder / within)]
    names = dtype.names or ()
    rows = [{name: each[name] for name in names} for each in map(open_rows, paths)]
    return of_arrays(paths, rows, [name for name in names if name == "board"])


def _title(row: Record) -> str:
    values, move = row.values, row.values["move_dir"]
    chosen = f"{_ARROWS[move]} {DIRECTIONS[move]}"
    return f"run {values['run_id']} · step {values['step_index']:,} · {chosen}"


def _heading(folder: Path, row: Record) -> Text:
    from rich.text import Text

    names = read_valuation_types(folder / "valuation_types.json")
    valued = printable(cut(names[row.values["valuation_type"]], 24))
    return Text(f"{_title(row)} · {valued}", "bold")


def _ranks(folder: Path) -> Callable[[int], Sequence[int]]:
    """Returns what gives the 16 ranks of a row: true ranks where they are known, else at most 16.

    Ranks above 65536 follow from the other steps of the run, which are read for such a row.
    """
    stream = cache(lambda: StepStream(folder))

    @lru_cache(1)
    def of_run(first: int, stop: int) -> TrueRanks:
        return true_ranks(stream().read(first, stop), np.zeros(1, np.int64))

    def ranks(number: int) -> Sequence[int]:
        batch = stream().batch(number, number + 1)
        found = decode_boards(batch.rows["board"], batch.rows["tile_65536_mask"])[0]
        if batch.rows["tile_65536_mask"][0]:
            first, stop = stream().run_bounds(batch.first_run)
            known, at = of_run(first, stop), number - first
            if not known.unknown[at]:
                found = known.ranks[at]
        return list(map(int, found))

    return ranks


def late_row(folder: Path) -> int:
    """Returns the number of a late step of the best run, which the page of a pack or view draws."""
    side = read_description(folder).sides[0] if (folder / DESCRIPTION).exists() else ""
    runs = read_runs(folder / side / "metadata.db")
    numbers = [at for at, run in enumerate(runs) if run.steps]
    at = max(numbers, key=lambda at: runs[at].max_score, default=-1)
    return 0 if at < 0 else sum(run.steps for run in runs[:at]) + (runs[at].steps - 1) * 19 // 20
