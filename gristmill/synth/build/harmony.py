"""The builder of one Harmony shard from raw files.

See also `harmony_rows.py`: raw rows to Harmony rows; `harmony_manifest.py`: the
manifest over all shards. Source: `docs/formats/synth.md#harmony-shards`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.synth.build.harmony_rows import Envelope, RawRows
from gristmill.synth.build.harmony_shard import shard_name
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import parquet
from gristmill.synth.format.row_digest import RowsDigest
from gristmill.synth.raw import files as raw

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS: Final = 1000


@dataclass(frozen=True)
class HarmonySummary(Summary):
    """Counts of one Harmony shard.

    rows: number of conversations.
    skipped: number of raw rows without a query, reasoning or answer.
    row_groups: number of Parquet row groups.
    raw_files: number of raw files.
    """

    rows: int
    skipped: int
    row_groups: int
    raw_files: int


def to_harmony(
    raw_files: Sequence[Path],
    out: Path,
    shard_index: int,
    config: HarmonyConfig,
    *,
    progress: Progress = SILENT,
) -> HarmonySummary:
    """Write `synth_harmony_shard_XX.parquet` from the raw files of this shard.

    raw_files: all files of the complete drop in order, because the files of a
        shard depend on the whole list.
    out: folder to write, which must not exist.
    shard_index: number of the shard, from 0.
    config: of the conversion.
    progress: gets the stage "convert", in raw rows.

    A shard without rows has no file. Memory does not grow with the number of rows.
    Raises BadInput for a file that is not readable Parquet, is damaged, lacks a
    column or has it twice, for texts that are not strings or not UTF-8, and for
    metadata that JSON cannot hold. Raises ValueError for another shard_index.
    Source: `docs/formats/synth.md#harmony-shards`.
    """
    import pyarrow as pa

    out.mkdir(parents=True)
    run = raw.contiguous_run(raw_files, shard_index, config.num_shards)
    name = shard_name(f"{shard_index:02d}")
    columns = ["messages_json", "metadata_json", *config.metadata_fields]
    schema = pa.schema([(column, pa.string()) for column in columns])
    counts = _Counts()
    with (
        progress.stage("convert", unit="rows", total=_total(run, config)) as stage,
        closing(_ShardWriter(out / name, schema)) as writer,
    ):
        converted = _converted(run, config, schema, counts, stage)
        for table in _grouped(converted, config.rows_per_group):
            writer.add(table)
    files = {name: writer.note()} if writer.groups else {}
    skipped = counts.read - writer.rows
    return HarmonySummary(files, writer.rows, skipped, writer.groups, len(run))


class _ShardWriter:
    """Writes the row groups of a shard; the file begins with the first one."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = self.groups = 0
        self._path, self._schema = path, schema
        self._parquet: pq.ParquetWriter | None = None
        self._digest = RowsDigest()

    def add(self, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        if self._parquet is None:
            self._parquet = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        for batch in table.to_batches():
            self._digest.update(batch)
        self._parquet.write_table(table, row_group_size=len(table))
        self.groups, self.rows = self.groups + 1, self.rows + len(table)

    def note(self) -> FileNote:
        return FileNote(rows=self.rows, content_sha256=self._digest.hexdigest())

    def close(self) -> None:
        if self._parquet is not None:
            self._parquet.close()


@dataclass
class _Counts:
    read: int = 0


def _converted(
    run: Sequence[Path],
    config: HarmonyConfig,
    schema: pa.Schema,
    counts: _Counts,
    stage: Stage,
) -> Iterator[pa.RecordBatch]:
    """Yield the Harmony rows of the raw files, in file and row order."""
    envelope = Envelope(config)
    for path in run:
        with parquet.opened(path, [*raw.TEXTS, *config.metadata_fields]) as file:
            names = file.schema_arrow.names
            raw.check_columns(path, names, [*raw.TEXTS, "synth_id"])
            _check_texts(path, file.schema_arrow)
            fields = [name for name in config.metadata_fields if name in names]
            wanted = [*dict.fromkeys([*raw.TEXTS, *fields])]
            row = 0
            for whole in parquet.batches(path, file, _BATCH_ROWS, wanted):
                left = config.max_rows - counts.read
                batch = whole.slice(0, max(0, left)) if config.max_rows >= 0 else whole
                counts.read += len(batch)
                stage.advance(len(batch))
                yield envelope.convert(RawRows(path, row, batch), fields, schema)
                row += len(batch)
                if counts.read == config.max_rows:
                    return


def _total(run: Sequence[Path], config: HarmonyConfig) -> int:
    """Return the number of raw rows that the shard takes."""
    rows = 0
    for path in run:
        with parquet.opened(path, [*raw.TEXTS, *config.metadata_fields]) as file:
            rows += file.metadata.num_rows
    return min(rows, config.max_rows) if config.max_rows >= 0 else rows


def _check_texts(path: Path, schema: pa.Schema) -> None:
    for name in raw.TEXTS:
        if not parquet.is_text(kind := schema.field(name).type):
            raise BadInput(path, f"{name} is {kind}, not a string: is it a raw SYNTH file?")


def _grouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `rows`; the last one has the rest."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for batch in batches:
        waiting.append(batch)
        waiting_rows += len(batch)
        while waiting_rows >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows).combine_chunks()
            waiting, waiting_rows = table.slice(rows).to_batches(), waiting_rows - rows
    if waiting_rows:
        yield pa.Table.from_batches(waiting).combine_chunks()
