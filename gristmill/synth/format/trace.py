"""The trace file of a shard: its path, its columns, its writer.

Source: `docs/formats/synth.md#trace`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from gristmill.contract import BadInput
from gristmill.synth.format import parquet
from gristmill.synth.format.row_digest import RowsDigest

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROW_GROUP: Final = 1 << 14


def path(number: str) -> str:
    """Return the path of a trace file, relative to the root of the dataset.

    number: of the shard in two digits, as "00".

    The path does not contain `shard`, so a reader that globs for shards does not
    find it.
    """
    return f"trace/trace_{number}.parquet"


def schema() -> pa.Schema:
    """Return the columns of a trace file.

    The page of the format has the meaning of each column.
    """
    import pyarrow as pa

    return pa.schema(
        [
            ("split", pa.string()),
            ("document", pa.int64()),
            ("input", pa.string()),
            ("row", pa.int64()),
            ("synth_id", pa.string()),
            ("language", pa.string()),
            ("exercise", pa.string()),
            ("offsets", pa.list_(pa.int32())),
        ]
    )


class TraceWriter:
    """Writes a trace file; the size of its row groups does not depend on the batches.

    Use it as a context manager. The file is complete after an exit without an
    error.
    """

    def __init__(self, file: Path) -> None:
        import pyarrow.parquet as pq

        file.parent.mkdir(parents=True, exist_ok=True)
        self._parquet = pq.ParquetWriter(file, schema(), compression="zstd")
        self._digest = RowsDigest()
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._digest.update(batch)
        self._waiting.append(batch)
        self._rows += len(batch)
        while self._rows >= _ROW_GROUP:
            self._write(_ROW_GROUP)

    def _write(self, rows: int) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._waiting, schema())
        self._parquet.write_table(table.slice(0, rows).combine_chunks(), row_group_size=rows)
        self._waiting = table.slice(rows).to_batches()
        self._rows -= rows

    def content_sha256(self) -> str:
        """Return the row digest of all rows so far: `docs/formats/synth.md#row-digest`."""
        return self._digest.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and self._rows:
            self._write(self._rows)
        self._parquet.close()


def opened(file: Path) -> pq.ParquetFile:
    """Open a trace file.

    Raises BadInput if it is not readable Parquet or has other columns than
    `schema`.
    """
    trace = parquet.opened(file, [])
    if not trace.schema_arrow.equals(schema()):
        raise BadInput(file, "does not have the columns of a trace: build the shard again")
    return trace
