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


def schema() -> pa.Schema:
    """The columns: texts, and the number of the row in its file, from 1."""
    import pyarrow as pa

    return pa.schema([*((name, pa.string()) for name in TEXTS), (ROW, pa.int64())])


def opened_writer(file: HashedFile) -> pq.ParquetWriter:
    """A writer of row groups. file: open for writing."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(file, schema(), compression="zstd")


def batch(values: Sequence[tuple[str, ...]], rows: Sequence[int]) -> pa.RecordBatch:
    """Rows as a batch. values: of `TEXTS`. rows: their numbers."""
    import pyarrow as pa

    columns = [pa.array(each, pa.string()) for each in zip(*values, strict=True)]
    return pa.RecordBatch.from_arrays([*columns, pa.array(rows, pa.int64())], schema=schema())
