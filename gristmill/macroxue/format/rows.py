"""Rows of steps, values and annotations, their npy files, and the kinds of folders.

Source: docs/formats/macroxue.md#row-layouts, docs/formats/macroxue.md#shards,
docs/formats/macroxue.md#annotations, docs/formats/macroxue.md#files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Literal

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.hashing import NamedFile
from gristmill.macroxue.config import Layout
from gristmill.macroxue.format.files import DESCRIPTION, read_session
from gristmill.untrusted.npy_header import npy_header, read_header

Rows = npt.NDArray[np.void]

_STEP_FIELDS: list[Any] = [
    ("run_id", "<u4"),
    ("step_index", "<u4"),
    ("board", "<u8"),
    ("board_eval", "<i4"),
    ("tile_65536_mask", "<u2"),
    ("move_dir", "u1"),
    ("valuation_type", "u1"),
    ("ev_legal", "u1"),
    ("max_rank", "u1"),
    ("seed", "<u4"),
    ("branch_evs", "<f4", (4,)),
]

STEP_ROW_DTYPE = np.dtype(_STEP_FIELDS, align=True)
"""One step, 48 bytes with two pad bytes at 26 (docs/formats/macroxue.md#row-layouts)."""

PACKED46 = np.dtype(_STEP_FIELDS)
"""The same fields without padding, 46 bytes (docs/formats/macroxue.md#row-layouts)."""

VALUE_ROW_DTYPE = np.dtype(
    [
        ("run_id", "<u4"),
        ("step_index", "<u4"),
        ("reward", "<f4"),
        ("reward_scaled", "<f4"),
        ("return_raw", "<f4"),
        ("return_scaled", "<f4"),
    ]
)
"""One row of the value sidecar, 24 bytes, no padding (docs/formats/macroxue.md#value-sidecar)."""

VALUE_COLUMNS = ("reward", "reward_scaled", "return_raw", "return_scaled")
"""What a row of the value sidecar says of a step."""

# Both layouts have the same bytes up to here; the aligned one continues with two pad bytes.
_COMMON_BYTES = 26

PADDING = slice(_COMMON_BYTES, _COMMON_BYTES + 2)
"""The pad bytes of an aligned row; always written as 0."""

MOVES = ("up", "down", "left", "right")
"""Names of `move_dir` 0..3; also the order of `branch_evs` and of the bits of `ev_legal`."""

# The Rust npy writer reserves this many characters for the row count
# (docs/formats/macroxue.md#npy-header).
_PEER_COUNT_WIDTH = 19


@dataclass(frozen=True)
class RowFormat:
    """A row dtype with the spelling of its npy header (docs/formats/macroxue.md#npy-header).

    spelling: "numpy" as `np.save` writes it; "peer" as the Rust programs write it.

    The length of the header does not depend on the number of rows, so a writer can fill in
    the number at the end.
    """

    dtype: np.dtype[Any]
    spelling: Literal["numpy", "peer"]

    def header(self, rows: int) -> bytes:
        """The npy header of a file of this number of rows, from the magic to the newline."""
        if self.spelling == "numpy":
            return npy_header(self.dtype, (rows,))
        fields = []
        for name in self.dtype.names or ():
            kind = self.dtype[name]
            base, shape = kind.subdtype if kind.subdtype is not None else (kind, ())
            tail = f", {shape}" if shape else ""
            fields.append(f"('{name}', '<{base.kind}{base.itemsize}'{tail}), ")
        text = f"{{'descr': [{''.join(fields)}], 'fortran_order': False, 'shape': ("
        end = ",), }"
        unpadded = 10 + len(text) + _PEER_COUNT_WIDTH + len(end) + 1
        body = f"{text}{rows}{end}".ljust(-(-unpadded // 64) * 64 - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body.encode("ascii")


STEP_FORMATS: dict[Layout, RowFormat] = {
    "aligned48": RowFormat(STEP_ROW_DTYPE, "numpy"),
    "packed46": RowFormat(PACKED46, "peer"),
}
VALUE_FORMAT = RowFormat(VALUE_ROW_DTYPE, "peer")


def as_bytes(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Contiguous rows [N] as uint8 [N, itemsize] with their pad bytes; a view, no copy."""
    return rows.view(np.uint8).reshape(len(rows), rows.dtype.itemsize)


def copied(rows: Rows, chosen: npt.NDArray[np.bool_] | slice = slice(None)) -> Rows:
    """A copy of the chosen rows [N] (default: all), with the pad bytes that NumPy may leave out."""
    octets = as_bytes(rows)[chosen].copy()
    return octets.view(rows.dtype)[:, 0]


def to_packed(rows: Rows) -> Rows:
    """Step rows [N] of either layout as PACKED46 rows [N]; packed rows are not copied."""
    if rows.dtype.itemsize == PACKED46.itemsize:
        return rows
    packed = np.empty(len(rows), PACKED46)
    source, target = as_bytes(np.ascontiguousarray(rows)), as_bytes(packed)
    target[:, :_COMMON_BYTES] = source[:, :_COMMON_BYTES]
    target[:, _COMMON_BYTES:] = source[:, _COMMON_BYTES + 2 :]
    return packed


def to_aligned(rows: Rows) -> Rows:
    """Rows [N] as STEP_ROW_DTYPE, converted with padding 0; aligned rows are not copied."""
    if rows.dtype.itemsize == STEP_ROW_DTYPE.itemsize:
        return rows
    aligned = np.empty(len(rows), STEP_ROW_DTYPE)
    source, target = as_bytes(np.ascontiguousarray(rows)), as_bytes(aligned)
    target[:, :_COMMON_BYTES] = source[:, :_COMMON_BYTES]
    target[:, PADDING] = 0
    target[:, _COMMON_BYTES + 2 :] = source[:, _COMMON_BYTES:]
    return aligned


def to_layout(rows: Rows, layout: Layout) -> Rows:
    """Step rows [N] of either layout in the named one; copied only where the layout differs."""
    return to_packed(rows) if layout == "packed46" else to_aligned(rows)


def pack_boards(
    ranks: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]:
    """Ranks [N, 16], each 0..31, to the columns (board uint64 [N], tile_65536_mask uint16 [N]).

    Cell 0 is the most significant nibble of the board, but bit 0 of the mask. A rank of 16 or
    more is stored as nibble 15 with its mask bit set.
    """
    nibbles = np.minimum(ranks, 15).astype(np.uint8)
    pairs = np.ascontiguousarray((nibbles[:, 0::2] << 4) | nibbles[:, 1::2])
    board = pairs.view(">u8")[:, 0].astype(np.uint64)
    bits = np.packbits(np.asarray(ranks) >= 16, axis=1, bitorder="little")
    return board, np.ascontiguousarray(bits).view("<u2")[:, 0].astype(np.uint16)


def decode_boards(
    board: npt.NDArray[np.uint64], mask: npt.NDArray[np.uint16]
) -> npt.NDArray[np.uint8]:
    """Columns board and tile_65536_mask [N] to ranks uint8 [N, 16]; a masked cell becomes 16."""
    octets = np.ascontiguousarray(board).astype(">u8").view(np.uint8).reshape(-1, 8)
    ranks = np.empty((len(octets), 16), np.uint8)
    ranks[:, 0::2] = octets >> 4
    ranks[:, 1::2] = octets & 15
    low = np.ascontiguousarray(mask).astype("<u2").view(np.uint8).reshape(-1, 2)
    ranks[np.unpackbits(low, axis=1, bitorder="little").astype(bool)] = 16
    return ranks


_MAX_SHARDS = 100_000


def npy_files(folder: Path, stem: str) -> list[Path]:
    """`<stem>.npy` alone, or all `<stem>-*.npy` by name; BadInput for both forms or neither."""
    single = folder / f"{stem}.npy"
    numbered = sorted(folder.glob(f"{stem}-*.npy"))
    if single.exists() and numbered:
        rule = f"holds both {stem}.npy and {numbered[0].name}: readers disagree on which one to use"
        raise BadInput(folder, f"{rule}; remove the one that is stale")
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
        rule = f"the header says {shape[0]} rows of {dtype.itemsize} bytes behind byte {offset},"
        rule += f" but the file has {size} bytes: it is cut short or too long; copy it again"
        raise BadInput(path, rule)
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
        self._out, self._format, self._stem, self._cuts = out, format, stem, shard_rows
        self._file: FileIO | None = None
        self._name, self._rows = "", 0

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
        planned = len(self.written) if isinstance(self._cuts, int) else len(self._cuts)
        if kind is None and len(self.written) != planned:
            raise ValueError(f"{len(self.written)} shards written, {planned} were planned")

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
            rule = f"more than {_MAX_SHARDS} shards do not sort by name: use a larger shard_rows"
            raise ValueError(rule)
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


_FOREIGN: Final = {
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


def refuse_foreign_rows(path: Path) -> None:
    """Raise BadInput, naming the right reader, for a steps file of another form, by its fields."""
    try:
        with path.open("rb") as file:
            names = set(read_header(file)[2].names or ())
    except ValueError:
        return
    if "exps" in names:
        raise BadInput(path, _FOREIGN["self_play"])
    if "board" in names and "tile_65536_mask" not in names:
        raise BadInput(path, _FOREIGN["legacy"])


MANIFEST: Final = "annotation_manifest.json"
UNKNOWN: Final = 255
"""A `teacher_move` or `argmax_head` that is none."""

ROW_DTYPE = np.dtype(
    [
        ("run_id", "<u4"),
        ("step_index", "<u4"),
        ("teacher_move", "u1"),
        ("legal_mask", "u1"),
        ("policy_kind_mask", "u1"),
        ("argmax_head", "u1"),
        ("argmax_prob", "<f4"),
        ("policy_p1", "<f4", (4,)),
        ("policy_logp", "<f4", (4,)),
        ("policy_hard", "<f4", (4,)),
    ]
)
"""One row of `annotations-*.npy`, 64 bytes, no padding."""

VALUE_DTYPE = np.dtype(
    [("run_id", "<u4"), ("step_index", "<u4"), ("value", "<f4"), ("value_xform", "<f4")]
)
"""One row of `annotations-value-*.npy`, 16 bytes, no padding."""

ROWS, STUDENT = "annotations", "annotations-student"
VALUES, VALUE_BINS = "annotations-value", "annotations-value-bins"
STEMS: Final = (ROWS, STUDENT, VALUES, VALUE_BINS)
"""The stems of the files; a folder has the first, and any of the others with as many files."""


def file_name(stem: str, number: int) -> str:
    """The name of a file, as `annotations-000000.npy`."""
    return f"{stem}-{number:06d}.npy"


def row_dtype(stem: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype of one row of a file of this shape and dtype, None where the stem has none such.

    Bins are plain float32: [N, 4, bins] of a student, [N, bins] of values.
    """
    if stem in (ROWS, VALUES):
        wanted = ROW_DTYPE if stem == ROWS else VALUE_DTYPE
        return wanted if dtype == wanted and len(shape) == 1 else None
    inner = shape[1:]
    fits = inner[:1] == (4,) and len(inner) == 2 if stem == STUDENT else len(inner) == 1
    if dtype != np.dtype("<f4") or not fits or not inner[-1]:
        return None
    return np.dtype([("bins", "<f4", inner)])


def unannotated(dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    """Rows [N] of a file's dtype that say nothing."""
    rows = np.zeros(count, dtype)
    for name in dtype.names or ():
        if dtype[name].base.kind == "f":
            rows[name] = np.nan
        elif name in ("teacher_move", "argmax_head"):
            rows[name] = UNKNOWN
    return rows


def asset_of(folder: Path) -> str | None:
    """The asset of a folder without a record, by names alone; None where it is not of 2048.

    It may be damaged, or of another program and lack its tables: its reader then raises BadInput. A
    pool, whose session has the key `packs`, is a pack where its metadata.db cannot be read.
    """
    database, has_steps = folder / "metadata.db", any(folder.glob("steps*.npy"))
    if (folder / DESCRIPTION).is_file():
        return "macroxue/training_view"
    if has_steps or (database.is_file() and (folder / "valuation_types.json").is_file()):
        with suppress(BadInput):
            if "packs" in read_session(database):
                return "macroxue/pool"
        return "macroxue/pack"
    is_sidecar = (folder / "values.json").is_file() and any(folder.glob("values*.npy"))
    return "macroxue/values" if is_sidecar else None
