"""A digest of the rows of a table, whatever Parquet made of them.

Parquet files carry the name and version of the library that wrote them, so
their bytes are not reproducible from the rows; this digest is.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.synth.format import parquet

if TYPE_CHECKING:
    import pyarrow as pa


class RowsDigest:
    """sha256 over the columns of a table that is fed in batches.

    Columns hold integers, lists of int32, or what casts to strings; what does none
    of these, as structs and bytes, counts by how Python writes it.

    The same rows in the same order give the same digest, however they are
    divided into batches. Null and the empty string differ.
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {}
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch; all batches have the same columns."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name not in self._columns:
                self._columns[field.name] = [hashlib.sha256(), hashlib.sha256()]
            sizes, values = self._columns[field.name]
            contents = _contents(column, self._rows)
            for content, digest in zip(contents, (sizes, values), strict=True):
                digest.update(content)
        self._rows += len(batch)

    def hexdigest(self) -> str:
        whole = hashlib.sha256()
        for name, (sizes, values) in self._columns.items():
            whole.update(f"{name}\0{sizes.hexdigest()}{values.hexdigest()}\n".encode())
        return whole.hexdigest()


def _contents(column: pa.Array, before: int) -> tuple[memoryview, memoryview]:
    """The sizes of a column's values (-1 for null) and the values back to back, as bytes.

    Of integers, which all have one size, the rows of the nulls instead, counted
    from the `before` rows that came earlier.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_integer(kind):
        nulls = np.flatnonzero(column.is_null()) + before if column.null_count else ()
        return _bytes(pa.array(nulls, pa.int64()), "<i8"), _bytes(pc.fill_null(column, 0), "<i8")
    nested = pa.types.is_list(kind) and kind.value_type == pa.int32()
    if not nested and not pa.types.is_string(kind):
        column = column.cast(pa.string()) if _casts(kind) else _written(column)
    lengths = pc.list_value_length(column) if nested else pc.binary_length(column)
    sizes = _bytes(pc.fill_null(lengths, -1), "<i4")
    if nested:
        return sizes, _bytes(column.flatten(), "<i4")
    # Nulls take no room between their neighbours only once they are rewritten.
    dense = pc.fill_null(column, "") if column.null_count else column
    _, starts, data = dense.buffers()
    begin, end = np.frombuffer(starts, dtype="<i4")[[dense.offset, dense.offset + len(dense)]]
    return sizes, memoryview(data)[begin:end] if data is not None else memoryview(b"")


def _casts(kind: pa.DataType) -> bool:
    """Whether every column of this type casts to strings, whatever is in it."""
    import pyarrow as pa

    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return False
    try:
        pa.array([], kind).cast(pa.string())
    except pa.ArrowException:
        return False
    return True


def _written(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    found, broken = parquet.values(column)
    written = [None if value is None else repr(value) for value in found]
    for index, error in broken.items():
        written[index] = repr(error.object)
    return pa.array(written, pa.string())


def _bytes(numbers: pa.Array, dtype: str) -> memoryview:
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False), dtype=dtype)
    return values.view(np.uint8).data
