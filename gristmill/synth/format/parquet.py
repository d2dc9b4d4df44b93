"""Reads Parquet files from other writers in batches; errors name the file and the row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.contract import BadInput
from gristmill.untrusted.parquet import check_once, cure

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def opened(path: Path, once: Sequence[str]) -> pq.ParquetFile:
    """Open a Parquet file; its page checksums are compared when pages are read.

    once: names of columns that the file may have at most once. Other columns may
        be there several times.

    Raises BadInput if the file is not readable Parquet, or has one of these
    columns more than once.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
        names = parquet.schema_arrow.names
    # A column name that is not UTF-8 is a UnicodeDecodeError; an exception of Arrow's C++ library
    # that has no class in Python is a RuntimeError.
    except (pa.ArrowException, OSError, UnicodeDecodeError, RuntimeError) as error:
        raise BadInput(path, f"is not a readable Parquet file ({error}): {cure(error)}") from error
    check_once(names, once, path)
    return parquet


def batches(
    path: Path,
    parquet: pq.ParquetFile,
    size: int,
    columns: Sequence[str] | None = None,
    row_groups: Sequence[int] | None = None,
    first_row: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open file in order, as `with_strings` gives them.

    path: the file, for error messages.
    parquet: the open file.
    size: number of rows in a batch, at most.
    columns: names of the columns to read; None (default) for all.
    row_groups: numbers of the row groups to read; None (default) for all.
    first_row: number of rows before the first of these row groups, default 0.

    Raises BadInput if the file is damaged, with the first row that could not be
    read, and if the number of rows is not the one in the footer.
    """
    import pyarrow as pa

    groups = list(range(parquet.num_row_groups) if row_groups is None else row_groups)
    expected = sum(parquet.metadata.row_group(group).num_rows for group in groups)
    rows = 0
    try:
        for batch in parquet.iter_batches(
            size,
            row_groups=groups,
            columns=None if columns is None else list(columns),
            use_threads=False,
        ):
            rows += len(batch)
            yield with_strings(batch)
    except (pa.ArrowException, OSError, RuntimeError) as error:
        rule = f"is damaged in this row or one after it ({error}): {cure(error)}"
        raise BadInput(path, rule, first_row + rows + 1) from error
    if rows != expected:
        rule = f"holds {rows:,} rows, but its footer says {expected:,}: get it again"
        raise BadInput(path, rule)


def with_strings(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose dictionaries of strings, string views and JSON are strings."""
    import pyarrow as pa

    def as_strings(column: Any) -> Any:
        if is_json(column.type):
            column = column.storage
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
            column = column.dictionary_decode()
        # Few of Arrow's functions accept views.
        return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column

    return pa.RecordBatch.from_arrays(list(map(as_strings, batch.columns)), batch.schema.names)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds strings of any kind, or only nulls."""
    import pyarrow as pa

    if is_json(kind):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)
    )


def is_json(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds strings that Parquet marks as JSON."""
    import pyarrow as pa

    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json"


def values(column: pa.Array) -> tuple[list[Any], dict[int, UnicodeDecodeError]]:
    """Return a column as Python values, and by index the errors of strings that are not UTF-8.

    column: of any type. A string that is not UTF-8 becomes None.

    Parquet requires UTF-8, but Arrow does not check it: a lone surrogate, as
    WTF-8 encodes it, is noticed only when the value is decoded.
    """
    try:
        return column.to_pylist(), {}
    except UnicodeDecodeError:
        decoded: list[Any] = []
        errors: dict[int, UnicodeDecodeError] = {}
        for index, value in enumerate(column):
            try:
                decoded.append(value.as_py())
            except UnicodeDecodeError as error:
                decoded.append(None)
                errors[index] = error
        return decoded, errors


def statistics(parquet: pq.ParquetFile, group: int, leaf: int) -> pq.Statistics | None:
    """Return the statistics of a column in a row group; None where the footer gives none.

    A footer may give the column another type than its schema does. Arrow ends the process when it
    is asked for the statistics of such a column.
    """
    column = parquet.metadata.row_group(group).column(leaf)
    if column.physical_type != parquet.schema.column(leaf).physical_type:
        return None
    return column.statistics


def null_count(parquet: pq.ParquetFile, group: int, leaf: int) -> int | None:
    """Return the nulls of a column in a row group as the footer says; None where it does not."""
    said = statistics(parquet, group, leaf)
    if said is None or not said.has_null_count:
        return None
    return int(said.null_count)
