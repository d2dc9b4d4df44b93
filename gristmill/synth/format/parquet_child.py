"""What a child process does with an untrusted Parquet file: describe it, read its rows.

Arrow decides itself how much memory a page takes, and a page of a few bytes may claim
gigabytes. See also `untrusted_parquet.py`: the calls of these functions.

Source: `docs/formats/synth.md#parquet-limits`, `docs/formats/synth.md#row-filter`,
`docs/formats/synth.md#harmony-part-files`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput
from gristmill.synth.format.batch_bytes import divided, with_strings
from gristmill.synth.format.parquet import null_count, rows_without_text
from gristmill.untrusted.arrow_errors import cure

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

RATIO: Final = 1000
"""Bytes of rows for each byte of the file, at most."""
ANY_RATIO_BYTES: Final = 64 << 20
"""Bytes of rows that every file may have."""
ANY_ROWS: Final = 100_000
"""Rows that every file may have; above it needs a byte for each row."""
DEPTH: Final = 32
"""Levels of nested columns."""
COLUMNS: Final = 10_000
"""Columns, those inside of nested columns included."""
_SHOWN: Final = 300
_BUFFER: Final = 1 << 20


@dataclass(frozen=True)
class Described:
    """What a footer says.

    schema: the columns, without metadata.
    groups: number of rows of each row group.
    nulls: by column, for those that were asked for and are there, the number of nulls in
        each row group; None where the footer does not say it.
    """

    schema: pa.Schema
    groups: list[int]
    nulls: dict[str, list[int | None]]


@dataclass(frozen=True)
class Wanted:
    """Which rows to read.

    size: rows of a batch, at most.
    columns: names; None for all.
    groups: numbers of row groups in order.
    first_row: number of rows before these row groups.
    row_bytes: bytes of one row, at most.
    """

    size: int
    columns: list[str] | None
    groups: list[int]
    first_row: int
    row_bytes: int


def describe(descriptor: int, path: Path, nulls: Sequence[str]) -> Described:
    """Return what the footer of a file says, after comparing it with the limits.

    descriptor: of the open file.
    path: of the file, for error messages.
    nulls: names of columns.

    Raises BadInput.
    """
    parquet = _opened(descriptor, path)
    try:
        schema = parquet.schema_arrow.remove_metadata()
        _check_schema(schema, path)
        metadata = parquet.metadata
        count = parquet.num_row_groups
        groups = [metadata.row_group(group).num_rows for group in range(count)]
        _check_rows(groups, metadata.num_rows, os.fstat(descriptor).st_size, path)
        leaves = _leaves(parquet)
        counts = {
            name: [null_count(parquet, group, leaves[name]) for group in range(count)]
            for name in nulls
            if name in leaves
        }
    except _errors() as error:
        raise _unreadable(path, error) from error
    return Described(schema, groups, counts)


def read(descriptor: int, path: Path, wanted: Wanted) -> Iterator[memoryview]:
    """Yield batches of rows, each as an Arrow IPC stream of its own.

    descriptor: of the open file.
    path: of the file, for error messages.
    wanted: which rows.

    Strings of a dictionary and string views become strings. A batch that is too large is
    divided. Raises BadInput.
    """
    row = wanted.first_row
    parquet = _opened(descriptor, path)
    allowed = max(ANY_RATIO_BYTES, RATIO * os.fstat(descriptor).st_size)
    try:
        batches = parquet.iter_batches(
            wanted.size, row_groups=wanted.groups, columns=wanted.columns, use_threads=False
        )
        for batch in batches:
            for part, size in divided(batch, path, row, wanted.row_bytes):
                allowed -= size
                if allowed < 0:
                    rule = f"holds more than {RATIO:,} times the bytes of the file up to this row"
                    raise BadInput(path, f"{rule}: it looks like a decompression bomb", row + 1)
                yield _as_stream(part)
                row += len(part)
    except MemoryError as error:
        rule = "takes too much memory to read in this row or one after it"
        raise BadInput(path, f"{rule}: it looks like a decompression bomb", row + 1) from error
    except _errors() as error:
        rule = f"is damaged in this row or one after it ({_cut(error)}): {cure(error)}"
        raise BadInput(path, rule, row + 1) from error


def filled(descriptor: int, path: Path, wanted: Wanted, rows: int | None) -> int:
    """Return how many rows have in each column a text that is neither null nor empty.

    descriptor: of the open file.
    path: of the file, for error messages.
    wanted: which rows; columns of strings.
    rows: how many rows are looked at; None for all.

    Raises BadInput for a damaged file.
    """
    count = row = 0
    try:
        batches = _opened(descriptor, path).iter_batches(
            wanted.size, row_groups=wanted.groups, columns=wanted.columns, use_threads=False
        )
        for whole in batches:
            batch = whole if rows is None else whole.slice(0, rows - row)
            count += _filled(with_strings(batch))
            row += len(batch)
            if row == rows:
                break
    except _errors() as error:
        rule = f"is damaged in this row or one after it ({_cut(error)}): {cure(error)}"
        raise BadInput(path, rule, row + 1) from error
    return count


def filled_at_most(descriptor: int, path: Path, columns: Sequence[str]) -> int | None:
    """Return what `filled` counts if no text is empty, by the footer; None if it says nothing.

    descriptor: of the open file.
    path: of the file, for error messages.
    columns: names of columns of strings.

    The footer may be wrong, and a text may be empty. Raises BadInput for a damaged footer.
    """
    parquet = _opened(descriptor, path)
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
    except _errors() as error:
        raise _unreadable(path, error) from error
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


class _Last:
    """The file that was opened last: a footer of a large file takes long to parse."""

    key: tuple[int, ...] = ()
    parquet: pq.ParquetFile | None = None


def _opened(descriptor: int, path: Path) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    stat = os.fstat(descriptor)
    key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    if _Last.parquet is None or _Last.key != key:
        _Last.parquet = None
        try:
            # The path opens the file once more, with a position of its own.
            _Last.parquet = pq.ParquetFile(
                f"/proc/self/fd/{descriptor}",
                pre_buffer=False,
                buffer_size=_BUFFER,
                page_checksum_verification=True,
            )
        except MemoryError:
            raise
        except _errors() as error:
            raise _unreadable(path, error) from error
        _Last.key = key
    return _Last.parquet


def _errors() -> tuple[type[Exception], ...]:
    """What Arrow raises for a damaged file, errors of Python's conversions included."""
    import pyarrow as pa

    # RuntimeError: an exception of its C++ library that has no class in Python.
    known = (OSError, ValueError, TypeError, LookupError, OverflowError, RuntimeError)
    return (pa.ArrowException, *known)


def _unreadable(path: Path, error: Exception) -> BadInput:
    if isinstance(error, UnicodeDecodeError):
        # Arrow decodes names when they are asked for.
        name = error.object[:_SHOWN]
        return BadInput(path, f"has a column whose name is not UTF-8 ({name!r}): rename it")
    return BadInput(path, f"is not a readable Parquet file ({_cut(error)}): {cure(error)}")


def _cut(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."


def _check_schema(schema: pa.Schema, path: Path) -> None:
    """Compare names, nesting and number of columns with the limits."""
    import pyarrow as pa

    columns = 0
    fields = [(field, 1) for field in schema]
    while fields:
        field, depth = fields.pop()
        columns += 1
        if depth > DEPTH:
            raise BadInput(path, f"has columns nested deeper than {DEPTH} levels")
        if columns > COLUMNS:
            raise BadInput(path, f"has more than {COLUMNS:,} columns")
        kind = field.type
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        fields += [(kind.field(at), depth + 1) for at in range(kind.num_fields)]


def _check_rows(groups: Sequence[int], rows: int, size: int, path: Path) -> None:
    if min(groups, default=0) < 0 or sum(groups) != rows:
        rule = f"its row groups have {sum(groups):,} rows, and the footer says {rows:,}"
        raise BadInput(path, f"{rule}: get it again")
    if rows > ANY_ROWS + size:
        rule = f"claims {rows:,} rows in {size:,} bytes"
        raise BadInput(path, f"{rule}: it looks like a decompression bomb")


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
