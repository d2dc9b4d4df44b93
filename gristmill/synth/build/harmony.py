"""Raw SYNTH rows become Harmony conversations: the builder of one `synth_harmony_v1` shard.

Manifests belong to `harmony_manifest.py`. Source: `docs/formats/synth.md#harmony-shards`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import parquet
from gristmill.synth.format.row_digest import RowsDigest
from gristmill.synth.raw import files as raw

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH: Final = 1000


@dataclass(frozen=True)
class HarmonySummary(Summary):
    """Counts of one shard. rows: conversations written; skipped: a text was missing."""

    rows: int
    skipped: int
    row_groups: int
    raw_files: int


def shard_name(number: str) -> str:
    """File name of a Harmony shard; `number` is "00" to "03"."""
    return f"synth_harmony_shard_{number}.parquet"


def system_message(config: HarmonyConfig) -> dict[str, Any]:
    """The system message of every conversation, keys in the contract's order."""
    return {
        "role": "system",
        "content": [
            {
                "type": "system_content",
                "model_identity": config.model_identity,
                "reasoning_effort": config.reasoning_effort.capitalize(),
                "conversation_start_date": config.conversation_start_date,
                "knowledge_cutoff": config.knowledge_cutoff,
                "channel_config": {
                    "valid_channels": ["analysis", "commentary", "final"],
                    "channel_required": True,
                },
            }
        ],
    }


def developer_message(config: HarmonyConfig) -> dict[str, Any] | None:
    """The developer message of every conversation, if it has one."""
    if config.developer is None:
        return None
    return {
        "role": "developer",
        "content": [{"type": "developer_content", "instructions": config.developer}],
    }


def to_harmony(
    raw_files: Sequence[Path],
    out: Path,
    shard_index: int,
    config: HarmonyConfig,
    *,
    progress: Progress = SILENT,
) -> HarmonySummary:
    """Write `synth_harmony_shard_XX.parquet` from this shard's run of the raw files.

    raw_files: all files of the complete drop in order, since the run depends on
    the whole list. A row is skipped and counted if its query, reasoning or
    answer is null or empty; nothing is stripped. A shard without rows has no
    file. Memory does not depend on the number of rows.

    progress: gets the stage "convert", in raw rows.

    Raises BadInput for a
    file that is no Parquet, is damaged, lacks a column or has it twice, for texts
    that are not strings or not UTF-8, and for metadata that JSON cannot hold.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    out.mkdir(parents=True)
    run = raw.contiguous_run(raw_files, shard_index, config.num_shards)
    name = shard_name(f"{shard_index:02d}")
    columns = ["messages_json", "metadata_json", *config.metadata_fields]
    schema = pa.schema([(column, pa.string()) for column in columns])
    digest, counts = RowsDigest(), _Counts()
    writer: pq.ParquetWriter | None = None
    groups = rows = 0
    with progress.stage("convert", unit="rows", total=_total(run, config)) as stage:
        converted = _converted(run, config, schema, counts, stage)
        for table in _grouped(converted, config.rows_per_group):
            if writer is None:
                # Only now: a shard without rows has no file.
                writer = pq.ParquetWriter(out / name, schema, compression="zstd")
            for batch in table.to_batches():
                digest.update(batch)
            writer.write_table(table, row_group_size=config.rows_per_group)
            groups, rows = groups + 1, rows + len(table)
    files = {}
    if writer is not None:
        writer.close()
        files[name] = FileNote(rows=rows, content_sha256=digest.hexdigest())
    return HarmonySummary(files, rows, counts.read - rows, groups, len(run))


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
    """Harmony rows of the raw files, in file and row order."""
    envelope = _Envelope(config)
    for path in run:
        with parquet.opened(path, [*raw.TEXTS, *config.metadata_fields]) as file:
            names = file.schema_arrow.names
            raw.check_columns(path, names, [*raw.TEXTS, "synth_id"])
            _check_texts(path, file.schema_arrow)
            fields = [name for name in config.metadata_fields if name in names]
            wanted = [*dict.fromkeys([*raw.TEXTS, *fields])]
            row = 0
            for whole in parquet.batches(path, file, _BATCH, wanted):
                left = config.max_rows - counts.read
                batch = whole.slice(0, max(0, left)) if config.max_rows >= 0 else whole
                counts.read += len(batch)
                stage.advance(len(batch))
                yield envelope.convert(_Rows(path, row, batch), fields, schema)
                row += len(batch)
                if counts.read == config.max_rows:
                    return


def _total(run: Sequence[Path], config: HarmonyConfig) -> int:
    """How many raw rows the shard takes."""
    rows = 0
    for path in run:
        with parquet.opened(path, [*raw.TEXTS, *config.metadata_fields]) as file:
            rows += file.metadata.num_rows
    return min(rows, config.max_rows) if config.max_rows >= 0 else rows


def _check_texts(path: Path, schema: pa.Schema) -> None:
    for name in raw.TEXTS:
        if not parquet.is_text(kind := schema.field(name).type):
            raise BadInput(path, f"{name} is {kind}, not a string: is it a raw SYNTH file?")


@dataclass(frozen=True)
class _Rows:
    """Some rows of a raw file, with `before` others before them."""

    path: Path
    before: int
    batch: pa.RecordBatch

    def values(self, name: str) -> list[Any]:
        """A column as Python values; BadInput for one that is not UTF-8."""
        found, broken = parquet.values(self.batch.column(name))
        if broken:
            index = min(broken)
            raise BadInput(
                self.path, f"{name} is not UTF-8 ({broken[index]})", self.before + index + 1
            )
        return found

    def check_metadata(self, columns: dict[str, list[Any]], kept: Sequence[int]) -> None:
        """BadInput for the first value that JSON cannot hold."""
        for name, column in columns.items():
            for index, value in zip(kept, column, strict=True):
                try:
                    json.dumps(value)
                except TypeError as error:
                    row = self.before + index + 1
                    raise BadInput(self.path, f"{name}: {error}", row) from error


class _Envelope:
    """The JSON around the texts of a row, made once; only the texts are encoded for each."""

    def __init__(self, config: HarmonyConfig) -> None:
        marks = [f"\0{index}\0" for index in range(len(raw.TEXTS))]
        messages = [system_message(config), developer_message(config)]
        messages += [
            {"role": role, "content": [{"type": "text", "text": mark}]} | channel
            for mark, (role, channel) in zip(
                marks,
                (
                    ("user", {}),
                    ("assistant", {"channel": "analysis"}),
                    ("assistant", {"channel": "final"}),
                ),
                strict=True,
            )
        ]
        whole = json.dumps({"messages": [message for message in messages if message is not None]})
        self._pieces: list[str] = []
        for mark in reversed(marks):
            # From the end: the marks are then found even if the config's own text has one.
            whole, _, after = whole.rpartition(json.dumps(mark))
            self._pieces.insert(0, after)
        self._pieces.insert(0, whole)

    def convert(self, rows: _Rows, fields: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
        """Harmony rows of those raw rows whose three texts are there and not empty."""
        import pyarrow as pa

        encode = json.dumps
        p0, p1, p2, p3 = self._pieces
        texts = zip(*(rows.values(name) for name in raw.TEXTS), strict=True)
        messages: list[str] = []
        kept: list[int] = []
        for index, (query, reasoning, answer) in enumerate(texts):
            if query and reasoning and answer:
                kept.append(index)
                messages.append(
                    f"{p0}{encode(query)}{p1}{encode(reasoning)}{p2}{encode(answer)}{p3}"
                )
        values = {name: list(map(rows.values(name).__getitem__, kept)) for name in fields}
        try:
            metadata = [
                json.dumps(dict(zip(fields, row, strict=True)))
                for row in zip(*values.values(), strict=True)
            ]
        except TypeError:
            rows.check_metadata(values, kept)
            raise
        strings = {
            name: [None if value is None else str(value) for value in column]
            for name, column in values.items()
        }
        absent = [None] * len(kept)
        columns = [messages, metadata, *(strings.get(name, absent) for name in schema.names[2:])]
        return pa.RecordBatch.from_arrays(
            [pa.array(column, pa.string()) for column in columns], schema=schema
        )


def _grouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows`, the last one with what is left."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        waiting.append(batch)
        held += len(batch)
        while held >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows).combine_chunks()
            waiting, held = table.slice(rows).to_batches(), held - rows
    if held:
        yield pa.Table.from_batches(waiting).combine_chunks()
