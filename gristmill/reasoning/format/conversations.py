"""A shard of normalised conversations: its name, its columns, its bytes.

The SYNTH family reads the first two columns as those of a Harmony shard.
Source: `docs/formats/chat.md#conversations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.hashing import HashedFile

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

REJECTED: Final = "rejected.jsonl"
"""Rows that were set aside."""
GROUP_ROWS: Final = 1000
TEXTS: Final = ("messages_json", "synth_id", "spans", "split", "file")
ROW: Final = "row"


def shard_name(number: str) -> str:
    """The file of a shard. number: in two digits."""
    return f"shard_{number}.parquet"


def shards(folder: Path) -> list[Path]:
    """The shards in a folder, sorted."""
    return sorted(folder.glob("shard_[0-9][0-9].parquet"))


def schema(kept: Sequence[str] = ()) -> pa.Schema:
    """The columns: texts, the number of the row in its file, from 1, and those that are kept."""
    import pyarrow as pa

    texts = [*((name, pa.string()) for name in TEXTS), (ROW, pa.int64())]
    return pa.schema([*texts, *((name, pa.string()) for name in kept)])


def opened_writer(file: HashedFile, kept: Sequence[str] = ()) -> pq.ParquetWriter:
    """A writer of row groups. file: open for writing. kept: columns beside the others."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(file, schema(kept), compression="zstd")


def batch(
    values: Sequence[tuple[str | None, ...]], rows: Sequence[int], kept: Sequence[str] = ()
) -> pa.RecordBatch:
    """Rows as a batch. values: of `TEXTS`, then of `kept`. rows: their numbers."""
    import pyarrow as pa

    columns = [pa.array(each, pa.string()) for each in zip(*values, strict=True)]
    columns.insert(len(TEXTS), pa.array(rows, pa.int64()))
    return pa.RecordBatch.from_arrays(columns, schema=schema(kept))
