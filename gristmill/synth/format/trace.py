"""The trace file of a shard, a document of it, and the row digest, which Parquet does not change.

Source: `docs/formats/synth.md#trace`, `docs/formats/synth.md#row-digest`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.synth.format import parquet

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class RowsDigest:
    """Computes the row digest of a table from its batches, however the rows are divided into them.

    Columns of integers, of lists of int32 and of strings are hashed as they are. Other columns are
    cast to strings. Types without such a cast (struct, bytes) are hashed by Python's `repr`.
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {}
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name not in self._columns:
                self._columns[field.name] = [hashlib.sha256(), hashlib.sha256()]
            sizes, values = self._columns[field.name]
            contents = _contents(column, self._rows)
            for content, digest in zip(contents, (sizes, values), strict=True):
                digest.update(content)
        self._rows += len(batch)

    def hexdigest(self) -> str:
        """Return the digest of all rows so far: 64 hex digits."""
        table = hashlib.sha256()
        for name, (sizes, values) in self._columns.items():
            table.update(f"{name}\0{sizes.hexdigest()}{values.hexdigest()}\n".encode())
        return table.hexdigest()


def _contents(column: pa.Array, before: int) -> tuple[memoryview, memoryview]:
    """The bytes that both digests take: sizes of values, -1 for null, and values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_integer(kind):
        nulls = np.flatnonzero(column.is_null()) + before if column.null_count else ()
        return _bytes(pa.array(nulls, pa.int64()), "<i8"), _bytes(pc.fill_null(column, 0), "<i8")
    if pa.types.is_string(kind) and len(column) and not column.null_count:
        _, starts, data = column.buffers()
        ends = np.frombuffer(starts, dtype="<i4")[column.offset :][: len(column) + 1]
        values = memoryview(data)[ends[0] : ends[-1]] if data is not None else memoryview(b"")
        return np.diff(ends).view(np.uint8).data, values
    nested = pa.types.is_list(kind) and kind.value_type == pa.int32()
    if not nested and not pa.types.is_string(kind):
        column = column.cast(pa.string()) if _casts(kind) else _as_repr(column)
    lengths = pc.list_value_length(column) if nested else pc.binary_length(column)
    sizes = _bytes(pc.fill_null(lengths, -1), "<i4")
    if nested:
        return sizes, _bytes(column.flatten(), "<i4")
    # A null may have bytes in the buffer; an empty string has none.
    dense = pc.fill_null(column, "") if column.null_count else column
    _, starts, data = dense.buffers()
    begin, end = np.frombuffer(starts, dtype="<i4")[[dense.offset, dense.offset + len(dense)]]
    return sizes, memoryview(data)[begin:end] if data is not None else memoryview(b"")


def _casts(kind: pa.DataType) -> bool:
    """Whether the values of a column of this type can always be cast to strings."""
    import pyarrow as pa

    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return False
    try:
        pa.array([], kind).cast(pa.string())
    except pa.ArrowException:
        return False
    return True


def _as_repr(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    values, errors = parquet.values(column)
    texts = [None if value is None else repr(value) for value in values]
    for index, error in errors.items():
        texts[index] = repr(error.object)
    return pa.array(texts, pa.string())


def _bytes(numbers: pa.Array, dtype: str) -> memoryview:
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False), dtype=dtype)
    return values.view(np.uint8).data


_ROW_GROUP: Final = 1 << 14


def path(number: str) -> str:
    """Return the path of a trace file, relative to the root of the dataset.

    The path does not contain `shard`, so a reader that globs for shards does not
    find it.
    """
    return f"trace/trace_{number}.parquet"


def schema() -> pa.Schema:
    """Return the columns of a trace file."""
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
    """Writes a trace file; the size of its row groups does not depend on the batches."""

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
    """Open a trace file. Raises BadInput for no Parquet, or other columns than `schema`."""
    trace = parquet.opened(file, [])
    if not trace.schema_arrow.equals(schema()):
        raise BadInput(file, "does not have the columns of a trace: build the shard again")
    return trace


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where a document comes from.

    input: file name of the Harmony shard.
    row: row in that shard, from 1.
    synth_id: of that row.
    language, exercise: of that row, None if it has none.
    offsets: token positions in the document where its messages begin, then that
        of the EOD; M + 1 numbers for M messages.
    """

    input: str
    row: int
    synth_id: str
    language: str | None
    exercise: str | None
    offsets: list[int]

    def message_bounds(self) -> list[tuple[int, int]]:
        """Return begin and end of each message, in tokens; the EOD is in no message."""
        return list(pairwise(self.offsets))


def trace(folder: Path, shard: str, split: str, document: int) -> Trace:
    """Trace one document of a Megatron dataset back to its row.

    folder: root of the dataset, which holds `trace/`.
    shard: number of the shard in two digits, as "00".
    split: "train" or "valid".
    document: number of the document in that split of the shard, from 0.

    Raises BadInput if the trace file is missing or damaged, or has no such
    document.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    file = folder / path(shard)
    if not file.is_file():
        raise BadInput(file, f"shard {shard} has no trace file: build the shard again")
    with opened(file) as parquet:
        try:
            group = _group_of(parquet, split, document) if document >= 0 else 0
            if parquet.num_row_groups:
                keys = parquet.read_row_group(group, columns=["split", "document"])
                matches = pc.and_(
                    pc.equal(keys["split"], split), pc.equal(keys["document"], document)
                )
                if pc.any(matches).as_py():
                    table = parquet.read_row_group(group).filter(matches)
                    row: dict[str, Any] = table.drop_columns(["split", "document"]).to_pylist()[0]
                    return Trace(**row)
        except (pa.ArrowException, OSError) as error:
            raise BadInput(file, f"is damaged ({error}): build the shard again") from error
    raise BadInput(file, f"no document {document} in {split} of shard {shard}")


def _group_of(parquet: pq.ParquetFile, split: str, document: int) -> int:
    """The row group that has a document if there is one: the last that begins at or before it."""
    sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    firsts = [*accumulate(sizes, initial=0)]
    low, high = 0, len(sizes)
    while high - low > 1:
        middle = (low + high) // 2
        if _before(parquet, middle, firsts[middle], split) <= document:
            low = middle
        else:
            high = middle
    return low


def _before(parquet: pq.ParquetFile, group: int, first: int, split: str) -> int:
    """How many documents of a split are before a row group, whose first row is `first`."""
    batches = parquet.iter_batches(1, row_groups=[group], columns=["split", "document"])
    (row,) = next(batches).to_pylist()
    # The rows before are documents of one of both splits.
    return int(row["document"] if row["split"] == split else first - row["document"])
