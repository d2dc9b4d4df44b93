"""What a child process does with an untrusted Parquet file: describe it, read its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.synth.format.batch_bytes import divided, with_strings
from gristmill.synth.format.parquet import null_count, rows_without_text
from gristmill.untrusted.parquet import Reading, arrow_errors, opened, unreadable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class Described:
    """What a footer says.

    nulls: by column, for those that were asked for and are there, the number of nulls in
        each row group; None where the footer does not say it.
    """

    schema: pa.Schema
    groups: list[int]
    nulls: dict[str, list[int | None]]


@dataclass(frozen=True)
class Wanted:
    """Which rows to read.

    columns: names; None for all.
    row_bytes: bytes of one row, at most.
    """

    size: int
    columns: list[str] | None
    groups: list[int]
    first_row: int
    row_bytes: int


def describe(descriptor: int, path: Path, nulls: Sequence[str]) -> Described:
    """Return what the footer of a file says, after comparing it with the limits.

    Raises BadInput.
    """
    parquet = opened(descriptor, path)
    try:
        schema = parquet.schema_arrow.remove_metadata()
        count = parquet.num_row_groups
        groups = [parquet.metadata.row_group(group).num_rows for group in range(count)]
        leaves = _leaves(parquet)
        counts = {
            name: [null_count(parquet, group, leaves[name]) for group in range(count)]
            for name in nulls
            if name in leaves
        }
    except arrow_errors() as error:
        raise unreadable(path, error) from error
    return Described(schema, groups, counts)


def read(descriptor: int, path: Path, wanted: Wanted) -> Iterator[memoryview]:
    """Yield batches of rows, each as an Arrow IPC stream of its own.

    Strings of a dictionary and string views become strings. A batch that is too large is
    divided. Raises BadInput.
    """
    parquet = opened(descriptor, path)
    with Reading(descriptor, path, wanted.first_row) as reading:
        batches = parquet.iter_batches(
            wanted.size, row_groups=wanted.groups, columns=wanted.columns, use_threads=False
        )
        for batch in batches:
            for part, size in divided(batch, path, reading.row, wanted.row_bytes):
                reading.takes(size)
                yield _as_stream(part)
                reading.row += len(part)


def filled(descriptor: int, path: Path, wanted: Wanted, rows: int | None) -> int:
    """Return how many rows have in each column a text that is neither null nor empty.

    rows: how many rows are looked at; None for all.

    Raises BadInput for a damaged file.
    """
    count = 0
    with Reading(descriptor, path) as reading:
        batches = opened(descriptor, path).iter_batches(
            wanted.size, row_groups=wanted.groups, columns=wanted.columns, use_threads=False
        )
        for whole in batches:
            batch = whole if rows is None else whole.slice(0, rows - reading.row)
            count += _filled(with_strings(batch))
            reading.row += len(batch)
            if reading.row == rows:
                break
    return count


def filled_at_most(descriptor: int, path: Path, columns: Sequence[str]) -> int | None:
    """Return what `filled` counts if no text is empty, by the footer; None if it says nothing.

    The footer may be wrong, and a text may be empty. Raises BadInput for a damaged footer.
    """
    parquet = opened(descriptor, path)
    try:
        full, leaves = 0, _leaves(parquet)
        if not leaves.keys() >= set(columns):
            return None
        for number in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(number).num_rows
            if not rows:
                continue
            nulls = [rows_without_text(parquet, number, leaves[name]) for name in columns]
            known = [count for count in nulls if count is not None]
            # Nulls of two columns may be in the same rows.
            if len(known) < len(nulls) or sum(map(bool, known)) > 1:
                return None
            full += rows - sum(known)
    except arrow_errors() as error:
        raise unreadable(path, error) from error
    return full


def _filled(batch: pa.RecordBatch) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    every = pa.scalar(True)
    for column in batch.columns:
        if pa.types.is_null(column.type):
            return 0
        every = pc.and_(every, pc.greater(pc.fill_null(pc.binary_length(column), 0), 0))
    return int(pc.sum(every).as_py() or 0)


def _leaves(parquet: pq.ParquetFile) -> dict[str, int]:
    """Statistics are kept for leaves, and a struct has several: names are not enough."""
    schema = parquet.schema
    return {schema.column(leaf).path: leaf for leaf in range(len(schema.names))}


def _as_stream(batch: pa.RecordBatch) -> memoryview:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())
