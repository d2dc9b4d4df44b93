"""What a worker does for a Harmony shard: one raw file becomes one part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput
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

_BATCH_ROWS: Final = 1000


@dataclass(frozen=True)
class Task:
    """One part to make.

    rows: how many of its rows are read; None for all.
    """

    path: Path
    rows: int | None
    config: HarmonyConfig
    links: LinkRule


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


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write the Harmony rows of a raw file as an Arrow IPC stream.

    Returns how many Harmony rows it has (`kept`), and how many raw rows were read up to the end of
    each of its batches (`read`).
    """
    import pyarrow as pa

    read, kept, schema = [], 0, schema_of(task.config)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with HashedFile(path) as file, pa.ipc.new_stream(file, schema, options=options) as writer:
        for rows, batch in _converted(task, schema):
            writer.write_batch(batch)
            read.append(rows)
            kept += len(batch)
    return {"read": read, "kept": kept, SHA256: file.sha256}


def _converted(task: Task, schema: pa.Schema) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the Harmony rows of the file batch by batch, with the raw rows read so far."""
    envelope, read = Envelope(task.config), 0
    with opened(task.path, task.config, task.links) as file:
        raw.check_columns(task.path, file.names, [*raw.TEXTS, "synth_id"])
        if (wrong := next(wrong_types(file.schema, raw.TEXTS, ()), None)) is not None:
            raise BadInput(task.path, wrong)
        fields = [name for name in task.config.metadata_fields if name in file.names]
        wanted = [*dict.fromkeys([*raw.TEXTS, *fields])]
        for whole in file.batches(_BATCH_ROWS, wanted, row_bytes=RAW_ROW_BYTES):
            batch = whole if task.rows is None else whole.slice(0, task.rows - read)
            converted = envelope.convert(RawRows(task.path, read, batch), fields, schema)
            read += len(batch)
            yield read, converted
            if read == task.rows:
                return
