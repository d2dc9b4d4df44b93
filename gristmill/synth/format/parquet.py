"""Parquet files that others wrote: opened and read in batches, with errors that name file and row.

What the columns mean belongs to `raw.py` and `grinding.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.contract import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def opened(path: Path, once: Sequence[str]) -> pq.ParquetFile:
    """Open a Parquet file; page checksums, where it has them, are compared.

    once: columns that may not stand there twice, since it could not be told
        which one is meant. BadInput for that, and for what is no Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(path, f"is not a readable Parquet file ({error}): get it again") from error
    names = parquet.schema_arrow.names
    if twice := [name for name in once if names.count(name) > 1]:
        raise BadInput(path, f"has the column {twice[0]} {names.count(twice[0])} times")
    return parquet


def batches(
    path: Path,
    parquet: pq.ParquetFile,
    size: int,
    columns: Sequence[str] | None = None,
    row_groups: Sequence[int] | None = None,
    first_row: int = 0,
) -> Iterator[pa.RecordBatch]:
    """The rows of an open file, at most `size` at a time, strings in one of Arrow's usual forms.

    first_row: rows before the first one of `row_groups`. BadInput where the file
    is damaged, with the first row that did not come, or holds other than it says.
    """
    import pyarrow as pa

    groups = list(range(parquet.num_row_groups) if row_groups is None else row_groups)
    due = sum(parquet.metadata.row_group(group).num_rows for group in groups)
    rows = 0
    try:
        for batch in parquet.iter_batches(
            size,
            row_groups=groups,
            columns=None if columns is None else list(columns),
            use_threads=False,
        ):
            rows += len(batch)
            yield _usual(batch)
    except (pa.ArrowException, OSError) as error:
        told = f"is damaged in this row or one after it ({error}): get it again"
        raise BadInput(path, told, first_row + rows + 1) from error
    if rows != due:
        raise BadInput(path, f"holds {rows:,} rows where it says {due:,}: get it again")


def _usual(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with string views as strings: few of Arrow's functions know views."""
    import pyarrow as pa

    if not any(pa.types.is_string_view(kind) for kind in batch.schema.types):
        return batch
    columns = [
        column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds strings, in any of Arrow's forms, or nulls alone."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)
    )


def values(column: pa.Array) -> tuple[list[Any], dict[int, UnicodeDecodeError]]:
    """A column as Python values; None, and the error by index, where a string is no UTF-8.

    Parquet promises UTF-8 and Arrow does not look: a lone surrogate, as WTF-8
    has it, comes through until somebody reads it.
    """
    try:
        return column.to_pylist(), {}
    except UnicodeDecodeError:
        found: list[Any] = []
        broken: dict[int, UnicodeDecodeError] = {}
        for index, value in enumerate(column):
            try:
                found.append(value.as_py())
            except UnicodeDecodeError as error:
                found.append(None)
                broken[index] = error
        return found, broken
