"""Rows: dtypes, npy headers, layouts, boards. Source: docs/formats/macroxue.md#row-layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.config import Layout
from gristmill.untrusted.npy_header import npy_header

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


def _peer_header(dtype: np.dtype[Any], rows: int) -> bytes:
    fields = []
    for name in dtype.names or ():
        kind = dtype[name]
        base, shape = kind.subdtype if kind.subdtype is not None else (kind, ())
        tail = f", {shape}" if shape else ""
        fields.append(f"('{name}', '<{base.kind}{base.itemsize}'{tail}), ")
    text = f"{{'descr': [{''.join(fields)}], 'fortran_order': False, 'shape': ("
    end = ",), }"
    unpadded = 10 + len(text) + _PEER_COUNT_WIDTH + len(end) + 1
    total = -(-unpadded // 64) * 64
    body = f"{text}{rows}{end}".ljust(total - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body.encode("ascii")


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
        if self.spelling == "peer":
            return _peer_header(self.dtype, rows)
        return npy_header(self.dtype, (rows,))


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
    """Step rows [N] of either layout as STEP_ROW_DTYPE rows [N]; aligned rows are not copied.

    The padding of converted rows is 0; aligned rows keep theirs.
    """
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
    """Ranks to the columns (board uint64 [N], tile_65536_mask uint16 [N]).

    ranks: integers [N, 16], each 0..31, row by row.

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
    """The columns of a board to its ranks uint8 [N, 16], row by row, each 0..16.

    board: uint64 [N], 16 nibbles.
    mask: uint16 [N], the column tile_65536_mask.

    A masked cell becomes 16; these columns do not keep higher ranks.
    """
    octets = np.ascontiguousarray(board).astype(">u8").view(np.uint8).reshape(-1, 8)
    ranks = np.empty((len(octets), 16), np.uint8)
    ranks[:, 0::2] = octets >> 4
    ranks[:, 1::2] = octets & 15
    low = np.ascontiguousarray(mask).astype("<u2").view(np.uint8).reshape(-1, 2)
    ranks[np.unpackbits(low, axis=1, bitorder="little").astype(bool)] = 16
    return ranks
