"""A digest of the rows of a table, whatever Parquet made of them.

Parquet files carry the name and version of the library that wrote them, so
their bytes are not reproducible from the rows; this digest is.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


class RowsDigest:
    """sha256 over the columns of a table that is fed in batches.

    Columns hold integers, lists of int32, or what casts to strings.

    The same rows in the same order give the same digest, however they are
    divided into batches. Null and the empty string differ.
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {}

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch; all batches have the same columns."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name not in self._columns:
                self._columns[field.name] = [hashlib.sha256(), hashlib.sha256()]
            sizes, values = self._columns[field.name]
            for content, digest in zip(_contents(column), (sizes, values), strict=True):
                digest.update(content)

    def hexdigest(self) -> str:
        whole = hashlib.sha256()
        for name, (sizes, values) in self._columns.items():
            whole.update(f"{name}\0{sizes.hexdigest()}{values.hexdigest()}\n".encode())
        return whole.hexdigest()


def _contents(column: pa.Array) -> tuple[memoryview, memoryview]:
    """The sizes of a column's values (-1 for null) and the values back to back, as bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type) and not column.null_count:
        return memoryview(b""), _bytes(column, "<i8")
    nested = pa.types.is_list(column.type)
    if not nested and not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    lengths = pc.list_value_length(column) if nested else pc.binary_length(column)
    sizes = _bytes(pc.fill_null(lengths, -1), "<i4")
    if nested:
        return sizes, _bytes(column.flatten(), "<i4")
    # Nulls take no room between their neighbours only once they are rewritten.
    dense = pc.fill_null(column, "") if column.null_count else column
    _, starts, data = dense.buffers()
    begin, end = np.frombuffer(starts, dtype="<i4")[[dense.offset, dense.offset + len(dense)]]
    return sizes, memoryview(data)[begin:end] if data is not None else memoryview(b"")


def _bytes(numbers: pa.Array, dtype: str) -> memoryview:
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False), dtype=dtype)
    return values.view(np.uint8).data
