"""Reads Parquet files in batches, of other writers in a child process; errors name file and row.

Source: `docs/formats/synth.md#parquet-limits`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from gristmill.contract import BadInput, os_reason
from gristmill.untrusted import child, files
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.parquet import Reading, arrow_errors, check_once, cure, unreadable
from gristmill.untrusted.parquet import opened as opened_here

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def opened(path: Path, once: Sequence[str]) -> pq.ParquetFile:
    """Open a Parquet file; its page checksums are compared when pages are read.

    Raises BadInput if it is not readable Parquet, or has one of the columns `once` more than once.
    """
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
        names = parquet.schema_arrow.names
    except arrow_errors() as error:
        raise unreadable(path, error) from error
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

    first_row: rows before the row groups. Raises BadInput with the first row that cannot be read,
        and if the number of rows is not the one in the footer.
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

    These become None. Arrow checks no UTF-8, which Parquet requires, before it decodes.
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


RAW_ROW_BYTES: Final = 4 << 20
"""Bytes of the columns that are read of one raw row, at most."""
HARMONY_ROW_BYTES: Final = 32 << 20
"""Bytes of one Harmony row, at most. JSON escapes make of one byte up to six."""
_BATCH_BYTES: Final = 16 << 20
"""Bytes of a batch, unless it is one row."""
_COPIED: Final = 1 << 20
_SECONDS: Final = 120
_BYTES_PER_SECOND: Final = 1 << 20


class UntrustedParquet:
    """An open Parquet file whose rows are read in a child process, if it is not ours.

    once: names of columns that the file may have at most once. Other columns may be there
        several times.
    links: what happens if the file is a link, for a file of a drop; None (default) for a
        file that a person or our own code named: a link is followed.
    is_own: whether our own code wrote the rows, and a record proves its bytes: they are read in
        this process, within the same limits of a row and of the file. Default False.
    groups: the rows of each row group.
    nulls: by column, the nulls in each row group as the footer says, None where it does not.

    Raises BadInput if the file is not a regular file, is not readable Parquet, breaks a
    limit, or has one of these columns more than once.
    """

    def __init__(
        self,
        path: Path,
        once: Sequence[str],
        nulls: Sequence[str] = (),
        links: LinkRule | None = None,
        is_own: bool = False,
    ) -> None:
        self._path, self._is_own = path, is_own
        try:
            self._file = files.opened(path, links)
        except OSError as error:
            rule = f"is not a readable Parquet file ({os_reason(error)})"
            raise BadInput(path, rule) from error
        self.schema: pa.Schema
        self.groups: list[int]
        self.nulls: dict[str, list[int | None]]
        try:
            number = self._file.fileno()
            self.schema, self.groups, self.nulls = (
                _describe(number, path, list(nulls))
                if is_own
                else child.run(_describe, path, list(nulls), file=path, descriptors=[number])
            )
            check_once(self.names, once, path)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """Names of its columns."""
        return list(self.schema.names)

    @property
    def rows(self) -> int:
        """Number of its rows."""
        return sum(self.groups)

    def batches(
        self,
        size: int,
        columns: Sequence[str] | None = None,
        row_groups: Sequence[int] | None = None,
        row_bytes: int = HARMONY_ROW_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; strings of a dictionary and string views become strings.

        size: number of rows in a batch, at most.
        columns: names of the columns to read; None (default) for all.
        row_groups: numbers of consecutive row groups to read; None (default) for all.
        row_bytes: bytes of one row in these columns, at most; default 32 MiB.

        Raises BadInput if the file is damaged or breaks a limit, with the first row that
        could not be read, and if the number of rows is not the one in the footer.
        """
        groups = list(range(len(self.groups)) if row_groups is None else row_groups)
        expected = sum(self.groups[group] for group in groups)
        first_row = sum(self.groups[: min(groups, default=0)])
        names = None if columns is None else list(columns)
        asked = self._path, {"batch_size": size, "columns": names, "row_groups": groups}
        rows = 0
        for batch in self._batches(*asked, first_row, row_bytes):
            rows += len(batch)
            yield batch
        if rows != expected:
            rule = f"holds {rows:,} rows, but its footer says {expected:,}: get it again"
            raise BadInput(self._path, rule)

    def _batches(self, *asked: Any) -> Iterator[pa.RecordBatch]:
        """Yield what `_parts` yields: here, or by a child."""
        import pyarrow as pa

        number = self._file.fileno()
        if self._is_own:
            yield from _parts(number, *asked)
            return
        seconds = _SECONDS + os.fstat(number).st_size / _BYTES_PER_SECOND
        for octets in child.stream(
            _read, *asked, file=self._path, descriptors=[number], seconds=seconds
        ):
            with pa.ipc.open_stream(pa.py_buffer(octets)) as reader:
                yield reader.read_next_batch()

    def copy(self, path: Path) -> None:
        """Write the same bytes to another file."""
        with os.fdopen(os.dup(self._file.fileno()), "rb") as source, path.open("xb") as target:
            source.seek(0)
            shutil.copyfileobj(source, target, _COPIED)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OwnParts(UntrustedParquet):
    """The parts of a shard of our own as one file, whose row groups are numbered through.

    One part is open at a time. Arguments and errors as of `UntrustedParquet`.
    """

    def __init__(self, paths: Sequence[Path], once: Sequence[str], nulls: Sequence[str]) -> None:
        self._given = [(path, once, nulls, None, True) for path in paths]
        self._sizes: list[int] = []
        self.groups, self.nulls = [], {}
        for given in self._given:
            with UntrustedParquet(*given) as file:
                self.schema = file.schema
                self.groups += file.groups
                self._sizes.append(len(file.groups))

    def batches(
        self,
        size: int,
        columns: Sequence[str] | None = None,
        row_groups: Sequence[int] | None = None,
        row_bytes: int = HARMONY_ROW_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some row groups, part by part."""
        first, wanted = 0, range(len(self.groups)) if row_groups is None else row_groups
        for given, count in zip(self._given, self._sizes, strict=True):
            if own := [group - first for group in wanted if first <= group < first + count]:
                with UntrustedParquet(*given) as file:
                    yield from file.batches(size, columns, own, row_bytes)
            first += count

    def close(self) -> None:
        """Nothing is open."""


def _describe(
    descriptor: int, path: Path, nulls: Sequence[str]
) -> tuple[pa.Schema, list[int], dict[str, list[int | None]]]:
    """Return schema, groups and nulls of a file, in the child."""
    parquet = opened_here(descriptor, path)
    try:
        schema, count = parquet.schema, parquet.num_row_groups
        groups = [parquet.metadata.row_group(group).num_rows for group in range(count)]
        # Statistics are kept for leaves, and a struct has several: names are not enough.
        leaves = {schema.column(leaf).path: leaf for leaf in range(len(schema.names))}
        counts = {
            name: [null_count(parquet, group, leaves[name]) for group in range(count)]
            for name in nulls
            if name in leaves
        }
        return parquet.schema_arrow.remove_metadata(), groups, counts
    except arrow_errors() as error:
        raise unreadable(path, error) from error


def _read(*asked: Any) -> Iterator[memoryview]:
    """Yield batches of rows in the child, each as an Arrow IPC stream of its own."""
    return map(_as_stream, _parts(*asked))


def _parts(
    descriptor: int, path: Path, wanted: dict[str, Any], first_row: int, row_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows within the limits. Raises BadInput with the row that breaks one."""
    parquet = opened_here(descriptor, path)
    with Reading(descriptor, path, first_row) as reading:
        for batch in parquet.iter_batches(**wanted, use_threads=False):
            for part in _divided(with_strings(batch), min(row_bytes, _BATCH_BYTES)):
                if part.nbytes > row_bytes:
                    rule = f"takes {part.nbytes:,} bytes: a row may take {row_bytes:,}"
                    raise BadInput(path, rule, reading.row + 1)
                reading.takes(part.nbytes)
                yield part
                reading.row += len(part)


def _divided(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts of so many bytes at most, or of one row."""
    if len(batch) <= 1 or batch.nbytes <= most:
        yield batch
        return
    yield from _divided(batch.slice(0, len(batch) // 2), most)
    yield from _divided(batch.slice(len(batch) // 2), most)


def _as_stream(batch: pa.RecordBatch) -> memoryview:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())
