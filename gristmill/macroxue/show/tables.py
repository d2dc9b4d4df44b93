"""The tables of rows in packs, pools and value sidecars, for the sample browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.browse.columns import Columns, of_arrays, of_values
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture
from gristmill.macroxue.format.metadata_db import read_runs
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, VALUE_ROW_DTYPE
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.show.board import step_svg

if TYPE_CHECKING:
    from gristmill.browse.opening import Files

_HEXADECIMAL: Final = ("board",)


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield the tables of a pack, a pool or a value sidecar.

    asset: its key. folder: its path. files: what the record says of them.
    """
    if asset == "macroxue/values":
        yield Stored("values", lambda: _values(files), sample=lambda row: (str(row.number), {}))
        return
    yield Stored(
        "steps",
        lambda: _steps(files),
        searchable=_HEXADECIMAL,
        sample=lambda row: (str(row.values["run_id"]), {"step": row.values["step_index"]}),
        pictures=_drawn(folder),
    )
    yield Stored(
        "runs",
        lambda: _runs(files),
        searchable=("seed",),
        sample=lambda row: (str(row.values["id"]), {}),
    )


def _steps(files: Files) -> Columns:
    paths = [files.checked(path.name) for path in step_files(files.folder)]
    names = STEP_ROW_DTYPE.names or ()
    rows = map(open_steps, paths)
    return of_arrays(paths, [{name: each[name] for name in names} for each in rows], _HEXADECIMAL)


def _values(files: Files) -> Columns:
    paths = [files.checked(path.name) for path in value_files(files.folder)]
    names = VALUE_ROW_DTYPE.names or ()
    rows = map(open_values, paths)
    return of_arrays(paths, [{name: each[name] for name in names} for each in rows])


def _runs(files: Files) -> Columns:
    path = files.checked("metadata.db")
    return of_values(path, [vars(run) for run in read_runs(path)])


def _drawn(folder: Path) -> Callable[[Record], Sequence[Picture]]:
    @cache
    def pack() -> Pack:
        return Pack(folder)

    def pictures(row: Record) -> Sequence[Picture]:
        return [Picture(f"step {row.number:,}", step_svg(pack().step(row.number)))]

    return pictures
