"""The row digest: a sha256 over the rows of a table, independent of how Parquet stores them.

Source: `docs/formats/synth.md#row-digest`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.synth.format import parquet

if TYPE_CHECKING:
    import pyarrow as pa


class RowsDigest:
    """Computes the row digest of a table from its batches.

    Columns of integers, of lists of int32 and of strings are hashed as they are. Other columns are
    cast to strings. Types without such a cast (struct, bytes) are hashed by Python's `repr`. The
    same rows in the same order give the same digest for every division into batches. Null and the
    empty string give different digests.
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {}
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name not in self._columns:
                self._columns[field.name] = [hashlib.sha256(), hashlib.sha256()]
            sizes, values = self._columns[field.name]
            contents = _contents(column, self._rows)
            for content, digest in zip(contents, (sizes, values), strict=True):
                digest.update(content)
        self._rows += len(batch)

    def hexdigest(self) -> str:
        """Return the digest of all rows so far: 64 hex digits."""
        table = hashlib.sha256()
        for name, (sizes, values) in self._columns.items():
            table.update(f"{name}\0{sizes.hexdigest()}{values.hexdigest()}\n".encode())
        return table.hexdigest()


def _contents(column: pa.Array, before: int) -> tuple[memoryview, memoryview]:
    """The bytes that both digests of a column take: sizes of its values, and values.

    The size of a null is -1. Integers have one size: the row numbers of nulls stand instead.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_integer(kind):
        nulls = np.flatnonzero(column.is_null()) + before if column.null_count else ()
        return _bytes(pa.array(nulls, pa.int64()), "<i8"), _bytes(pc.fill_null(column, 0), "<i8")
    if pa.types.is_string(kind) and len(column) and not column.null_count:
        _, starts, data = column.buffers()
        ends = np.frombuffer(starts, dtype="<i4")[column.offset :][: len(column) + 1]
        values = memoryview(data)[ends[0] : ends[-1]] if data is not None else memoryview(b"")
        return np.diff(ends).view(np.uint8).data, values
    nested = pa.types.is_list(kind) and kind.value_type == pa.int32()
    if not nested and not pa.types.is_string(kind):
        column = column.cast(pa.string()) if _casts(kind) else _as_repr(column)
    lengths = pc.list_value_length(column) if nested else pc.binary_length(column)
    sizes = _bytes(pc.fill_null(lengths, -1), "<i4")
    if nested:
        return sizes, _bytes(column.flatten(), "<i4")
    # A null may have bytes in the buffer; an empty string has none.
    dense = pc.fill_null(column, "") if column.null_count else column
    _, starts, data = dense.buffers()
    begin, end = np.frombuffer(starts, dtype="<i4")[[dense.offset, dense.offset + len(dense)]]
    return sizes, memoryview(data)[begin:end] if data is not None else memoryview(b"")


def _casts(kind: pa.DataType) -> bool:
    """Whether the values of a column of this type can always be cast to strings."""
    import pyarrow as pa

    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return False
    try:
        pa.array([], kind).cast(pa.string())
    except pa.ArrowException:
        return False
    return True


def _as_repr(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    values, errors = parquet.values(column)
    texts = [None if value is None else repr(value) for value in values]
    for index, error in errors.items():
        texts[index] = repr(error.object)
    return pa.array(texts, pa.string())


def _bytes(numbers: pa.Array, dtype: str) -> memoryview:
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False), dtype=dtype)
    return values.view(np.uint8).data
