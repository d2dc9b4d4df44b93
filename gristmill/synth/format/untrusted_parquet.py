"""Reads Parquet files, of other writers in a child process; errors name the file and the row.

Source: `docs/formats/synth.md#parquet-limits`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from gristmill.contract import BadInput, os_reason
from gristmill.synth.format.parquet import null_count, with_strings
from gristmill.untrusted import child, files
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.parquet import Reading, arrow_errors, check_once, opened, unreadable

if TYPE_CHECKING:
    import pyarrow as pa

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
    parquet = opened(descriptor, path)
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
    parquet = opened(descriptor, path)
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
