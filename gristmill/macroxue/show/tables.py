"""The tables of rows in packs, pools, value sidecars and views, for the sample browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.browse.columns import Columns, of_arrays, of_values
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture
from gristmill.macroxue.format.metadata_db import read_gaps, read_runs
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, VALUE_ROW_DTYPE
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files
from gristmill.macroxue.format.view_files import read_description
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.show.board import step_svg

if TYPE_CHECKING:
    from gristmill.browse.opening import Files

_HEXADECIMAL: Final = ("board",)


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield the tables of a pack, a pool, a value sidecar or a view."""
    if asset == "macroxue/values":
        yield Stored("values", lambda: _values(files), sample=lambda row: (str(row.number), {}))
        return
    if asset != "macroxue/training_view":
        yield from _of_pack(folder, files, "")
        return
    sides = read_description(folder).sides
    for side in sides:
        yield from _of_pack(folder, files, side)
    for side in sides:
        if not read_gaps(folder / side / "metadata.db"):
            continue  # a table without rows has nothing to show
        yield Stored(
            f"{side}/gaps" if side else "gaps",
            partial(_gaps, files, side),
            sample=partial(_run, side, "run_id"),
        )


def _of_pack(folder: Path, files: Files, side: str) -> Iterator[Stored]:
    """The steps and the runs of a pack, or of one side of a view; "" for a folder without sides."""
    within = f"{side}/" if side else ""
    yield Stored(
        f"{within}steps",
        lambda: _steps(files, within),
        searchable=_HEXADECIMAL,
        sample=lambda row: _run(side, "run_id", row, step=row.values["step_index"]),
        pictures=_drawn(folder / side),
    )
    yield Stored(
        f"{within}runs",
        lambda: _runs(files, within),
        searchable=("seed",),
        sample=partial(_run, side, "id"),
    )


def _run(side: str, column: str, row: Record, **more: Any) -> tuple[str, Mapping[str, Any]]:
    """What `gristmill trace` takes for a row that names its run in a column."""
    return str(row.values[column]), {**more, **({"split": side} if side else {})}


def _gaps(files: Files, side: str) -> Columns:
    path = files.checked(f"{side}/metadata.db" if side else "metadata.db")
    return of_values(path, [vars(gap) for gap in read_gaps(path)])


def _steps(files: Files, within: str) -> Columns:
    found = step_files(files.folder / within)
    paths = [files.checked(f"{within}{path.name}") for path in found]
    names = STEP_ROW_DTYPE.names or ()
    rows = map(open_steps, paths)
    return of_arrays(paths, [{name: each[name] for name in names} for each in rows], _HEXADECIMAL)


def _values(files: Files) -> Columns:
    paths = [files.checked(path.name) for path in value_files(files.folder)]
    names = VALUE_ROW_DTYPE.names or ()
    rows = map(open_values, paths)
    return of_arrays(paths, [{name: each[name] for name in names} for each in rows])


def _runs(files: Files, within: str) -> Columns:
    path = files.checked(f"{within}metadata.db")
    return of_values(path, [vars(run) for run in read_runs(path)])


def _drawn(folder: Path) -> Callable[[Record], Sequence[Picture]]:
    @cache
    def pack() -> Pack:
        return Pack(folder)

    def pictures(row: Record) -> Sequence[Picture]:
        return [Picture(f"step {row.number:,}", step_svg(pack().step(row.number)))]

    return pictures
