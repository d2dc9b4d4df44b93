"""The parts of a Harmony shard become its Parquet file.

See also `harmony_part.py`: one raw file to a part; `harmony.py`: the builder.

Source: `docs/formats/synth.md#harmony-part-files`, `docs/formats/synth.md#parquet-limits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.contract import BadInput, FileNote
from gristmill.hashing import HashedFile
from gristmill.synth.builders import harmony_part
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.row_digest import RowsDigest
from gristmill.synth.format.row_groups import RowGroupsWriter

if TYPE_CHECKING:
    import pyarrow as pa


class Joiner:
    """Appends parts to a Harmony shard, whose file begins with the first row group.

    path: the shard.
    config: of the conversion.

    read: number of raw rows so far.
    """

    def __init__(self, path: Path, config: HarmonyConfig) -> None:
        self.read = 0
        self._path, self._config = path, config
        self._file: HashedFile | None = None
        self._groups = RowGroupsWriter(self)
        self._digest = RowsDigest()
        self._has_digested = False
        self._waiting: list[pa.RecordBatch] = []

    @property
    def rows(self) -> int:
        """Number of Harmony rows so far."""
        return self._groups.rows + self.under_way

    @property
    def groups(self) -> int:
        """Number of row groups so far."""
        return self._groups.groups

    @property
    def under_way(self) -> int:
        """Number of rows in the row group that is not full."""
        return sum(map(len, self._waiting))

    def make(self, task: harmony_part.Task, path: Path) -> dict[str, Any]:
        """Make a part in this process, which is added next: its rows are not decoded for it.

        As `harmony_part.make_part`.
        """
        summary = harmony_part.make_part(task, path, self._digest.update)
        self._has_digested = True
        return summary

    def add(self, part: Path, summary: Mapping[str, Any], raw_file: Path) -> None:
        """Append one part.

        part: its file.
        summary: as `harmony_part.make_part` returns it.
        raw_file: that the part is from, for the error message.

        Raises BadInput if the rows of a row group take too many bytes, and for a raw file that
        had other rows when they were counted.
        """
        import pyarrow as pa

        if summary["before"] != self.under_way:
            rule = "this file, or one before it, was changed while it was read: start again"
            raise BadInput(raw_file, rule)
        self.read += summary["read"]
        with pa.memory_map(str(part)) as file:
            groups, head, tail = map(file.read_buffer, summary["sizes"])
            self._check(summary["head"], raw_file)
            self._waiting += _rows(head)
            if self.under_way == self._config.rows_per_group:
                self._flush()
            if groups.size:
                self._groups.add(memoryview(groups))
            self._waiting += _rows(tail)
            if not self._has_digested:
                for batch in chain(_rows(head), _decoded(groups), _rows(tail)):
                    self._digest.update(batch)
        self._has_digested = False

    def finish(self) -> FileNote | None:
        """Complete the file; return its note, or None if there are no rows and no file."""
        if self.under_way:
            self._flush()
        self._groups.finish()
        if self._file is None:
            return None
        return FileNote(
            rows=self.rows,
            content_sha256=self._digest.hexdigest(),
            sha256=self._file.sha256,
            bytes=self._file.bytes,
        )

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append bytes to the file: `RowGroupsWriter` calls this."""
        if self._file is None:
            self._file = HashedFile(self._path)
        return self._file.write(data)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _check(self, batches: list[list[int]], raw_file: Path) -> None:
        """Compare the rows that wait with the limit after each batch that gives some of them."""
        rows, size = self.under_way, sum(batch.nbytes for batch in self._waiting)
        for row, more, added in batches:
            rows, size = rows + more, size + added
            if harmony_part.is_too_large(size):
                raise harmony_part.too_large(raw_file, row, rows, self._config.rows_per_group)

    def _flush(self) -> None:
        """Append the rows that wait as a row group."""
        import pyarrow as pa

        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting = []
        sink = pa.BufferOutputStream()
        with harmony_part.group_writer(sink, table.schema) as writer:
            writer.write_table(table, row_group_size=len(table))
        self._groups.add(memoryview(sink.getvalue()))


def _rows(stream: pa.Buffer) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with pa.ipc.open_stream(stream) as reader:
        yield from reader


def _decoded(groups: pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part's row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not groups.size:
        return
    with closing(pq.ParquetFile(pa.BufferReader(groups))) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group, use_threads=False).to_batches()
