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

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.synth.build.harmony_rows import Envelope, RawRows
from gristmill.synth.build.harmony_shard import shard_name
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import parquet
from gristmill.synth.format.row_digest import RowsDigest
from gristmill.synth.format.untrusted_parquet import RAW_ROW_BYTES, UntrustedParquet
from gristmill.synth.raw import files as raw
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS: Final = 1000
_GROUP_BYTES: Final = 128 << 20


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
    links: LinkRule = REFUSE_LINKS,
) -> HarmonySummary:
    """Write `synth_harmony_shard_XX.parquet` from the raw files of this shard.

    raw_files: all files of the complete drop in order, because the files of a
        shard depend on the whole list.
    out: folder to write, which must not exist.
    shard_index: number of the shard, from 0.
    config: of the conversion.
    progress: gets the stage "convert", in raw rows.
    links: what happens to raw files that are links; default: they are refused.

    A shard without rows has no file. Memory does not grow with the number of rows.
    Raises BadInput for a file that is not readable Parquet, is damaged, breaks a limit,
    lacks a column or has it twice, for texts that are not strings or not UTF-8, for
    metadata that JSON cannot hold, and for a row group that takes too much memory.
    Raises ValueError for another shard_index, GristmillError if it gets no raw file.
    Source: `docs/formats/synth.md#harmony-shards`.
    """
    import pyarrow as pa

    run = raw.contiguous_run(raw_files, shard_index, config.num_shards)
    if not run:
        raise GristmillError(
            f"shard {shard_index} of {config.num_shards} gets none of {len(raw_files)} raw files: "
            "add files, or build fewer shards"
        )
    out.mkdir(parents=True)
    name = shard_name(f"{shard_index:02d}")
    columns = ["messages_json", "metadata_json", *config.metadata_fields]
    schema = pa.schema([(column, pa.string()) for column in columns])
    counts = _Counts()
    with (
        progress.stage("convert", unit="rows", total=_total(run, config, links)) as stage,
        closing(_ShardWriter(out / name, schema)) as writer,
    ):
        converted = _converted(run, config, schema, counts, stage, links)
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


@dataclass(frozen=True)
class _Converted:
    """The Harmony rows of some raw rows, and where the last of them is."""

    batch: pa.RecordBatch
    path: Path
    row: int


def _converted(
    run: Sequence[Path],
    config: HarmonyConfig,
    schema: pa.Schema,
    counts: _Counts,
    stage: Stage,
    links: LinkRule,
) -> Iterator[_Converted]:
    """Yield the Harmony rows of the raw files, in file and row order."""
    envelope = Envelope(config)
    once = [*raw.TEXTS, *config.metadata_fields]
    for path in run:
        with UntrustedParquet(path, once, links=links) as file:
            names = file.names
            raw.check_columns(path, names, [*raw.TEXTS, "synth_id"])
            _check_texts(path, file.schema)
            fields = [name for name in config.metadata_fields if name in names]
            wanted = [*dict.fromkeys([*raw.TEXTS, *fields])]
            row = 0
            for whole in file.batches(_BATCH_ROWS, wanted, row_bytes=RAW_ROW_BYTES):
                left = config.max_rows - counts.read
                batch = whole.slice(0, max(0, left)) if config.max_rows >= 0 else whole
                counts.read += len(batch)
                stage.advance(len(batch))
                rows = RawRows(path, row, batch)
                row += len(batch)
                yield _Converted(envelope.convert(rows, fields, schema), path, row)
                if counts.read == config.max_rows:
                    return


def _total(run: Sequence[Path], config: HarmonyConfig, links: LinkRule) -> int:
    """Return the number of raw rows that the shard takes."""
    rows = 0
    once = [*raw.TEXTS, *config.metadata_fields]
    for path in run:
        with UntrustedParquet(path, once, links=links) as file:
            rows += file.rows
    return min(rows, config.max_rows) if config.max_rows >= 0 else rows


def _check_texts(path: Path, schema: pa.Schema) -> None:
    for name in raw.TEXTS:
        if not parquet.is_text(kind := schema.field(name).type):
            raise BadInput(path, f"{name} is {kind}, not a string: is it a raw SYNTH file?")


def _grouped(converted: Iterator[_Converted], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `rows`; the last one has the rest."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for each in converted:
        waiting.append(each.batch)
        waiting_rows += len(each.batch)
        # Few batches wait, so this costs nothing beside the conversion of one.
        if sum(batch.nbytes for batch in waiting) > _GROUP_BYTES:
            rule = f"{waiting_rows:,} Harmony rows up to this raw row take more than"
            raise BadInput(
                each.path,
                f"{rule} {_GROUP_BYTES:,} bytes, and a row group of {rows:,} rows must not: lower "
                "rows_per_group in gristmill.toml, or correct the rows",
                each.row,
            )
        while waiting_rows >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows).combine_chunks()
            waiting, waiting_rows = table.slice(rows).to_batches(), waiting_rows - rows
    if waiting_rows:
        yield pa.Table.from_batches(waiting).combine_chunks()
