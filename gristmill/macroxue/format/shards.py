"""The npy files of a pack, opened safely, written. Source: docs/formats/macroxue.md#shards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.hashing import NamedFile
from gristmill.macroxue.format.rows import (
    PACKED46,
    STEP_ROW_DTYPE,
    VALUE_ROW_DTYPE,
    RowFormat,
    Rows,
)
from gristmill.untrusted.npy_header import read_header

_MAX_SHARDS = 100_000


def npy_files(folder: Path, stem: str) -> list[Path]:
    """`<stem>.npy` alone, or all `<stem>-*.npy` by name; BadInput for both forms or neither."""
    single = folder / f"{stem}.npy"
    numbered = sorted(folder.glob(f"{stem}-*.npy"))
    if single.exists() and numbered:
        raise BadInput(
            folder,
            f"holds both {stem}.npy and {numbered[0].name}: readers disagree on which one to use;"
            " remove the one that is stale",
        )
    for path in [single, *numbered]:
        if path.exists() and not path.is_file():
            raise BadInput(path, "is not a file: remove it, and build or copy the pack again")
    if single.exists():
        return [single]
    if not numbered:
        raise BadInput(folder, f"holds neither {stem}.npy nor {stem}-*.npy: not a pack")
    return numbered


def step_files(folder: Path) -> list[Path]:
    """The steps files of a pack or pool, in the order of their rows; as `npy_files`."""
    return npy_files(folder, "steps")


def value_files(folder: Path) -> list[Path]:
    """The value files of a sidecar, in the order of their rows; as `npy_files`."""
    return npy_files(folder, "values")


def rows_header(
    path: Path, file: BinaryIO, known: Sequence[np.dtype[Any]] = ()
) -> tuple[np.dtype[Any], int, int]:
    """Dtype, first byte and number of the rows of an npy file; `known` has the dtypes allowed."""
    try:
        shape, fortran, dtype = read_header(file)
    except ValueError as error:
        raise BadInput(path, f"no npy header that can be read: {error}") from error
    offset, size = file.tell(), os.fstat(file.fileno()).st_size
    if fortran or len(shape) != 1:
        raise BadInput(path, f"shape {shape} is not one column of rows")
    if dtype not in known if known else dtype.hasobject:
        raise BadInput(path, f"dtype {dtype} is not one of the known row layouts")
    if size != offset + shape[0] * dtype.itemsize:
        raise BadInput(
            path,
            f"the header says {shape[0]} rows of {dtype.itemsize} bytes behind byte {offset},"
            f" but the file has {size} bytes: it is cut short or too long; copy it again",
        )
    return dtype, offset, shape[0]


def _open_rows(path: Path, known: Sequence[np.dtype[Any]]) -> Rows:
    with path.open("rb") as file:
        dtype, offset, rows = rows_header(path, file, known)
    match = next(layout for layout in known if layout == dtype)
    if rows == 0:
        return np.empty(0, match)
    return np.asarray(np.memmap(path, match, "r", offset, (rows,)))


def open_steps(path: Path) -> Rows:
    """Map one steps file read-only."""
    return _open_rows(path, (STEP_ROW_DTYPE, PACKED46))


def open_values(path: Path) -> Rows:
    """Map one file of a value sidecar read-only: rows [N] of VALUE_ROW_DTYPE; as `open_steps`."""
    return _open_rows(path, (VALUE_ROW_DTYPE,))


class ShardWriter:
    """Writes rows to `<stem>.npy` or to `<stem>-00000.npy`, ...; a context manager.

    shard_rows: 0 for one file without number. N for numbered files of exactly N rows, of which
        only the last may have fewer. A sequence for numbered files of exactly these numbers of
        rows, as a value sidecar follows its steps.
    stem: of the file names; default "steps".
    written: (file name, rows) of each finished file; complete after the context is left.

    Raises FileExistsError for a file that exists, and ValueError where there are more than
    100,000 shards, or other shards than the sequence says.
    """

    def __init__(
        self, out: Path, format: RowFormat, shard_rows: int | Sequence[int], stem: str = "steps"
    ) -> None:
        self.written: list[tuple[str, int]] = []
        self._out = out
        self._format = format
        self._stem = stem
        self._cuts = shard_rows
        self._file: FileIO | None = None
        self._name = ""
        self._rows = 0

    def __enter__(self) -> ShardWriter:
        if self._cuts == 0:
            self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None and kind is None:
            self._close()
        elif self._file is not None:
            self._file.close()
        if (
            kind is None
            and not isinstance(self._cuts, int)
            and len(self.written) != len(self._cuts)
        ):
            raise ValueError(f"{len(self.written)} shards written, {len(self._cuts)} were planned")

    def write(self, rows: npt.NDArray[Any]) -> None:
        """Append contiguous rows [N]; TypeError if they have another dtype than the format."""
        if rows.dtype != self._format.dtype:
            raise TypeError(f"rows of {rows.dtype} given to a writer of {self._format.dtype}")
        octets = rows.view(np.uint8).data
        item = self._format.dtype.itemsize
        at = 0
        while at < len(rows):
            if self._file is None:
                self._open()
            take = min(self._left(), len(rows) - at)
            self._put(octets[at * item : (at + take) * item])
            self._rows += take
            at += take
            if self._left() == 0:
                self._close()

    def _left(self) -> int:
        """How many rows the open file may still take."""
        if isinstance(self._cuts, int):
            return self._cuts - self._rows if self._cuts else 1 << 62
        return self._cuts[len(self.written)] - self._rows

    def _open(self) -> None:
        index = len(self.written)
        if index >= _MAX_SHARDS:
            raise ValueError(
                f"more than {_MAX_SHARDS} shards do not sort by name: use a larger shard_rows"
            )
        self._name = f"{self._stem}.npy" if self._cuts == 0 else f"{self._stem}-{index:05d}.npy"
        self._file = NamedFile(self._out / self._name, "xb")
        self._put(memoryview(self._format.header(0)))

    def _put(self, octets: memoryview) -> None:
        assert self._file is not None
        while octets:
            octets = octets[self._file.write(octets) :]

    def _close(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        self._put(memoryview(self._format.header(self._rows)))
        self._file.close()
        self.written.append((self._name, self._rows))
        self._file, self._rows = None, 0


ForeignForm = Literal["self_play", "legacy"]

_REASONS: dict[ForeignForm, str] = {
    "self_play": (
        "self-play v1 rows (exps, no packed board, no move, no expected values): read them with"
        " the self-play reader and its collate (make_collate_steps), not with the Macroxue one;"
        " their run_id has 64 bits and their runs are not contiguous; `gristmill look --write` of"
        " their folder makes it a drop, from which a pack is built"
    ),
    "legacy": (
        "legacy expectimax rows (a packed board without tile_65536_mask): a 65536 cannot be"
        " distinguished from a 32768, and legality is missing; read them with the legacy loader"
        " and its collate (make_collate_steps), pack the raw logs again, or make the folder a drop"
        " by `gristmill look --write`, from which a pack is built"
    ),
}


def foreign_form(path: Path) -> ForeignForm | None:
    """Which foreign form the rows of a steps file have, by the field names in its header."""
    try:
        with path.open("rb") as file:
            names = set(read_header(file)[2].names or ())
    except ValueError:
        return None
    if "exps" in names:
        return "self_play"
    if "board" in names and "tile_65536_mask" not in names:
        return "legacy"
    return None


def refuse_foreign_rows(path: Path) -> None:
    """Raise BadInput, naming the right reader, where a steps file has a foreign form."""
    form = foreign_form(path)
    if form is not None:
        raise BadInput(path, _REASONS[form])
