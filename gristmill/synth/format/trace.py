"""The trace file of a shard: from every document back to its row, and to its messages.

It lies in `trace/trace_XX.parquet`, away from `train/` and `valid/` and without
`shard` in its name, so that a reader that globs for shards does not meet it.
Source: `docs/formats/synth.md#trace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from gristmill.contract import BadInput, Trace
from gristmill.synth.format import parquet
from gristmill.synth.format.row_digest import RowsDigest

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROW_GROUP: Final = 1 << 14


def path(number: str) -> str:
    """Where the trace of shard `number` ("00") lies, relative to the dataset's root."""
    return f"trace/trace_{number}.parquet"


def schema() -> pa.Schema:
    """The columns of a trace file.

    split: train or valid. document: 0-based, in that split of this shard.
    input: file name of the Harmony shard. row: 1-based row in it, as in error texts.
    offsets: int32 [messages + 1], token positions in the document where its
    messages begin; the last is that of the EOD.
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
    """Writes a trace file in row groups whose size does not depend on the batches."""

    def __init__(self, file: Path) -> None:
        import pyarrow.parquet as pq

        file.parent.mkdir(parents=True, exist_ok=True)
        self._parquet = pq.ParquetWriter(file, schema(), compression="zstd")
        self._digest = RowsDigest()
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
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
        """Digest of all rows added so far."""
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


@dataclass(frozen=True)
class Origin(Trace):
    """Where a document comes from. row: 1-based. offsets: see `schema`."""

    input: str
    row: int
    synth_id: str
    language: str | None
    exercise: str | None
    offsets: list[int]


def opened(file: Path) -> pq.ParquetFile:
    """Open a trace file. BadInput where it is none."""
    found = parquet.opened(file, [])
    if not found.schema_arrow.equals(schema()):
        raise BadInput(file, "has not the columns of a trace: build the shard again")
    return found


def origin(root: Path, number: str, split: str, document: int) -> Origin:
    """Trace one document of a dataset back. BadInput where there is no such document."""
    import pyarrow as pa
    import pyarrow.compute as pc

    file = root / path(number)
    if not file.is_file():
        raise BadInput(file, f"shard {number} has no trace")
    with opened(file) as found:
        try:
            for group in range(found.num_row_groups):
                keys = found.read_row_group(group, columns=["split", "document"])
                wanted = pc.and_(
                    pc.equal(keys["split"], split), pc.equal(keys["document"], document)
                )
                if pc.any(wanted).as_py():
                    table = found.read_row_group(group).filter(wanted)
                    row: dict[str, Any] = table.drop_columns(["split", "document"]).to_pylist()[0]
                    return Origin(**row)
        except (pa.ArrowException, OSError) as error:
            raise BadInput(file, f"is damaged ({error}): build the shard again") from error
    raise BadInput(file, f"no document {document} in {split} of shard {number}")


def message_bounds(origin: Origin) -> list[tuple[int, int]]:
    """Begin and end of each message of a document, in tokens; the EOD belongs to none."""
    edges = np.array(origin.offsets)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
