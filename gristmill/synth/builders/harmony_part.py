"""What a worker does for a Harmony shard: one raw file becomes one part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import HashedFile
from gristmill.run.parts import SHA256
from gristmill.synth.builders.harmony_rows import Envelope, RawRows
from gristmill.synth.builders.harmony_shard import wrong_types
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.untrusted_parquet import RAW_ROW_BYTES, UntrustedParquet
from gristmill.synth.raw import files as raw
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS: Final = 1000
_GROUP_BYTES: Final = 128 << 20


@dataclass(frozen=True)
class Task:
    """One part to make.

    rows: how many of its rows are read; None for all.
    before: how many rows the row group under way has from the files before.
    expected: how many rows it has that are kept, as its footer lets expect; None (default) if
        they must be counted.
    """

    path: Path
    rows: int | None
    before: int
    config: HarmonyConfig
    links: LinkRule
    expected: int | None = None


class NotCounted(GristmillError):
    """The rows of a raw file could not be counted."""


def schema_of(config: HarmonyConfig) -> pa.Schema:
    """Return the columns of a Harmony shard."""
    import pyarrow as pa

    columns = ["messages_json", "metadata_json", *config.metadata_fields]
    return pa.schema([(column, pa.string()) for column in columns])


def opened(path: Path, config: HarmonyConfig, links: LinkRule) -> UntrustedParquet:
    """Open a raw file.

    Raises BadInput for a file that is not readable Parquet, or that has a column that
    is read more than once.
    """
    return UntrustedParquet(path, [*raw.TEXTS, *config.metadata_fields], links=links)


def count(task: Task, path: Path) -> dict[str, Any]:
    """Count the rows of a raw file that are kept.

    task: the file; `before` is not used.
    path: file to write; it stays empty.

    Returns `kept`. Raises NotCounted if the rows cannot be read, so that no count is stored:
    `make_part` says what is wrong with them.
    """
    path.touch()
    try:
        with opened(task.path, task.config, task.links) as file:
            _check(task.path, file)
            return {"kept": file.filled(_BATCH_ROWS, raw.TEXTS, task.rows)}
    except BadInput as error:
        raise NotCounted(f"{task.path}: its rows could not be counted: {error.rule}") from error


def make_part(
    task: Task, path: Path, seen: Callable[[pa.RecordBatch], None] | None = None
) -> dict[str, Any]:
    """Write the part of a raw file.

    seen: takes each batch of Harmony rows, in order; default None.
    """
    part = _Part(task, seen)
    with HashedFile(path) as file, ExitStack() as parquet_file:
        sizes = []
        writer: pq.ParquetWriter | None = None
        for table in part.groups():
            if writer is None:
                writer = parquet_file.enter_context(group_writer(file, table.schema))
            writer.write_table(table, row_group_size=len(table))
        parquet_file.close()
        sizes.append(file.bytes)
        for batches in (part.head, part.tail):
            before = file.bytes
            _write_rows(file, batches, schema_of(task.config))
            sizes.append(file.bytes - before)
    return {
        "before": task.before,
        "read": part.read,
        "kept": part.kept,
        "sizes": sizes,
        "head": part.head_batches,
        SHA256: file.sha256,
    }


def group_writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of row groups with the settings of a Harmony shard."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(sink, schema, compression="zstd")


def too_large(path: Path, row: int, rows: int, group_rows: int) -> BadInput:
    """Return the error for a row group that takes too many bytes."""
    rule = f"{rows:,} Harmony rows up to this raw row take more than"
    return BadInput(
        path,
        f"{rule} {_GROUP_BYTES:,} bytes, and a row group of {group_rows:,} rows must not: lower "
        "rows_per_group in gristmill.toml, or correct the rows",
        row,
    )


def is_too_large(waiting: int) -> bool:
    """Return whether so many bytes are too many for the rows of a row group."""
    return waiting > _GROUP_BYTES


class _Part:
    """Converts the rows of a raw file, divided into row groups and rows beside them."""

    def __init__(self, task: Task, seen: Callable[[pa.RecordBatch], None] | None) -> None:
        self.read = self.kept = 0
        self.head: list[pa.RecordBatch] = []
        self.head_batches: list[list[int]] = []
        self.tail: list[pa.RecordBatch] = []
        self._task, self._seen = task, seen
        size = task.config.rows_per_group
        self._missing = (size - task.before) % size
        self._head_bytes = 0

    def groups(self) -> Iterator[pa.Table]:
        """Yield the rows of each row group that begins and ends in the file."""
        import pyarrow as pa

        size, rows = self._task.config.rows_per_group, 0
        for whole in self._converted():
            batch = self._after_head(whole)
            if self._missing:
                if is_too_large(self._head_bytes):
                    return  # the joiner has these rows and more, and says so
                continue
            self.tail.append(batch)
            rows += len(batch)
            # Few batches wait, so this costs nothing beside the conversion of one.
            if batch is whole and is_too_large(sum(each.nbytes for each in self.tail)):
                raise too_large(self._task.path, self.read, rows, size)
            while rows >= size:
                table = pa.Table.from_batches(self.tail)
                yield table.slice(0, size).combine_chunks()
                self.tail, rows = table.slice(size).to_batches(), rows - size

    def _after_head(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take the rows that the row group under way lacks; return the others."""
        if not self._missing:
            return batch
        self.head_batches.append([self.read, len(batch), batch.nbytes])
        self._head_bytes += batch.nbytes
        taken = min(self._missing, len(batch))
        self.head.append(batch.slice(0, taken))
        self._missing -= taken
        return batch.slice(taken)

    def _converted(self) -> Iterator[pa.RecordBatch]:
        """Yield the Harmony rows of the file, batch by batch."""
        task, schema = self._task, schema_of(self._task.config)
        envelope = Envelope(task.config)
        with opened(task.path, task.config, task.links) as file:
            _check(task.path, file)
            fields = [name for name in task.config.metadata_fields if name in file.names]
            wanted = [*dict.fromkeys([*raw.TEXTS, *fields])]
            for whole in file.batches(_BATCH_ROWS, wanted, row_bytes=RAW_ROW_BYTES):
                batch = whole if task.rows is None else whole.slice(0, task.rows - self.read)
                rows = RawRows(task.path, self.read, batch)
                self.read += len(batch)
                converted = envelope.convert(rows, fields, schema)
                self.kept += len(converted)
                if self._seen is not None:
                    self._seen(converted)
                yield converted
                if self.read == task.rows:
                    return


def _check(path: Path, file: UntrustedParquet) -> None:
    """Check that a raw file has the columns that are needed, and texts in those of the messages."""
    raw.check_columns(path, file.names, [*raw.TEXTS, "synth_id"])
    if (wrong := next(wrong_types(file.schema, raw.TEXTS, ()), None)) is not None:
        raise BadInput(path, wrong)


def _write_rows(file: HashedFile, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(file, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
