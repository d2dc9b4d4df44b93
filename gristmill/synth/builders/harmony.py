"""The builder of one Harmony shard: rows of raw files become JSON, a part a file, one Parquet file.

Source: `docs/formats/synth.md#messages`, `docs/formats/synth.md#harmony-part-files`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.hashing import HashedFile
from gristmill.inbox.division import contiguous_run
from gristmill.run.parts import SHA256, PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.synth import raw
from gristmill.synth.builders.harmony_shard import shard_name, wrong_types
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import parquet
from gristmill.synth.format.parquet import RAW_ROW_BYTES, UntrustedParquet
from gristmill.synth.format.trace import RowsDigest
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_CURE: Final = "correct it, write the column as strings, or leave it out of metadata_fields"
_COMPILED_ROWS: Final = 500
"""Rows of a batch from which on compiled code converts it; loading that code takes a while."""
_COMPILED_BYTES: Final = 1 << 30
"""Bytes around the texts of a batch, up to which it does; Arrow counts bytes in 32 bits."""


def system_message(config: HarmonyConfig) -> dict[str, Any]:
    """Return the system message of every conversation."""
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
    """Return the developer message of every conversation, None if it has none."""
    if config.developer is None:
        return None
    return {
        "role": "developer",
        "content": [{"type": "developer_content", "instructions": config.developer}],
    }


@dataclass(frozen=True)
class RawRows:
    """Some rows of a raw file."""

    path: Path
    before: int
    batch: pa.RecordBatch

    def values(self, name: str) -> list[Any]:
        """Return a column as Python values.

        Raises BadInput with the row of the first text that is not UTF-8, and for a value that
        Python cannot hold.
        """
        import pyarrow as pa

        try:
            values, broken = parquet.values(self.batch.column(name))
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            # As a time beyond the calendar, or in a time zone that is unknown.
            rule = (
                f"{name}: holds a value that cannot be read in this row or one after it ({error}): "
                f"{_CURE}"
            )
            raise BadInput(self.path, rule, self.before + 1) from error
        if broken:
            index = min(broken)
            rule = f"{name} is not UTF-8 ({broken[index]}): correct the row"
            raise BadInput(self.path, rule, self.before + index + 1)
        return values

    def check_metadata(self, columns: Mapping[str, Sequence[Any]], kept: Sequence[int]) -> None:
        """Check that JSON can hold all metadata values."""
        for name, column in columns.items():
            for index, value in zip(kept, column, strict=True):
                try:
                    json.dumps(value, allow_nan=False)
                except (TypeError, ValueError) as error:
                    row = self.before + index + 1
                    kind = self.batch.column(name).type
                    rule = f"{name} is {kind}, and JSON cannot hold its value ({error}): {_CURE}"
                    raise BadInput(self.path, rule, row) from error

    def check_ids(self, kept: Iterable[int]) -> None:
        """Check that all kept rows have a synth_id."""
        ids = self.values("synth_id")
        for index in kept:
            if ids[index] is None or not str(ids[index]).strip():
                rule = f"synth_id is {ids[index]!r}: give the row an id, which chooses its split"
                raise BadInput(self.path, rule, self.before + index + 1)


class Envelope:
    """The JSON around the texts of a row. It is made once; each row adds its texts."""

    def __init__(self, config: HarmonyConfig) -> None:
        marks = [f"\0{index}\0" for index in range(len(raw.TEXTS))]
        channels: tuple[tuple[str, dict[str, str]], ...] = (
            ("user", {}),
            ("assistant", {"channel": "analysis"}),
            ("assistant", {"channel": "final"}),
        )
        messages = [system_message(config), developer_message(config)]
        messages += [
            {"role": role, "content": [{"type": "text", "text": mark}]} | channel
            for mark, (role, channel) in zip(marks, channels, strict=True)
        ]
        text = json.dumps({"messages": [message for message in messages if message is not None]})
        self._between: list[str] = []
        for mark in reversed(marks):
            # From the end: the config's own texts, which come first, may hold a mark.
            text, _, after = text.rpartition(json.dumps(mark))
            self._between.insert(0, after)
        self._between.insert(0, text)

    def convert(self, rows: RawRows, fields: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
        """The Harmony rows of raw rows with three texts. Raises BadInput for other texts."""
        count = len(rows.batch)
        fits = count * sum(map(len, self._between)) <= _COMPILED_BYTES
        if fits and count >= _COMPILED_ROWS and _has_valid_strings(rows.batch):
            return self._compiled(rows, fields, schema)
        return self._interpreted(rows, fields, schema)

    def _compiled(self, rows: RawRows, fields: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
        """Convert rows whose columns are all valid strings."""
        import pyarrow as pa

        from gristmill.synth.format.json_strings import joined

        batch = rows.batch
        every = np.ones(len(batch), dtype=np.bool_)
        for name in raw.TEXTS:
            column = batch.column(name)
            starts = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(batch) + 1]
            every &= starts[:-1] < starts[1:]
            if column.null_count:
                every &= column.is_valid().to_numpy(zero_copy_only=False)
        kept = pa.array(np.flatnonzero(every), pa.int64())
        rows.check_ids(kept.to_pylist())
        names = [f"{json.dumps(name)}: " for name in fields]
        between = [
            f"{mark}{name}" for mark, name in zip(["{", *[", "] * len(names)], names, strict=False)
        ]
        absent = pa.nulls(len(kept), pa.string())
        columns = [
            joined([batch.column(name) for name in raw.TEXTS], self._between, kept),
            joined([batch.column(name) for name in fields], [*between, "}"], kept),
            *(
                batch.column(name).take(kept) if name in fields else absent
                for name in schema.names[2:]
            ),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _interpreted(
        self, rows: RawRows, fields: Sequence[str], schema: pa.Schema
    ) -> pa.RecordBatch:
        """Convert rows of any columns; errors name the row."""
        import pyarrow as pa

        messages, kept = self._messages(rows)
        rows.check_ids(kept)
        values = {name: list(map(rows.values(name).__getitem__, kept)) for name in fields}
        try:
            metadata = [
                json.dumps(dict(zip(fields, row, strict=True)), allow_nan=False)
                for row in zip(*values.values(), strict=True)
            ]
        except (TypeError, ValueError):
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

    def _messages(self, rows: RawRows) -> tuple[list[str], list[int]]:
        """Return the messages of the kept rows as JSON, and the indices of these rows."""
        encode = json.dumps
        p0, p1, p2, p3 = self._between
        texts = zip(*(rows.values(name) for name in raw.TEXTS), strict=True)
        messages: list[str] = []
        kept: list[int] = []
        for index, (query, reasoning, answer) in enumerate(texts):
            if query and reasoning and answer:
                kept.append(index)
                messages.append(
                    f"{p0}{encode(query)}{p1}{encode(reasoning)}{p2}{encode(answer)}{p3}"
                )
        return messages, kept


def _has_valid_strings(batch: pa.RecordBatch) -> bool:
    """Whether all columns are strings, and valid UTF-8."""
    import pyarrow as pa

    if any(kind != pa.string() for kind in batch.schema.types):
        return False
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


_BATCH_ROWS: Final = 1000


@dataclass(frozen=True)
class Task:
    """One part to make."""

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
    """Open a raw file. Raises BadInput for no Parquet, or a column read more than once."""
    return UntrustedParquet(path, [*raw.TEXTS, *config.metadata_fields], links=links)


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write a raw file's Harmony rows as an Arrow stream; how many, and rows read by batch."""
    import pyarrow as pa

    read, kept, schema = [], 0, schema_of(task.config)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with HashedFile(path) as file, pa.ipc.new_stream(file, schema, options=options) as writer:
        for rows, batch in _converted(task, schema):
            writer.write_batch(batch)
            read.append(rows)
            kept += len(batch)
    end = max(read, default=0)
    gone = sum(row <= end for row in task.links.forgotten.get(task.path, ()))
    return {"read": read, "kept": kept, "forgotten": gone, SHA256: file.sha256}


def kept_runs(gone: Collection[int], before: int, count: int) -> Iterator[tuple[int, int]]:
    """Begin and end of the runs of rows that are left of some. gone: numbers of rows from 1."""
    cuts = sorted(row - before for row in gone if before < row <= before + count)
    yield from zip([0, *cuts], [*(row - 1 for row in cuts), count], strict=True)


def _converted(task: Task, schema: pa.Schema) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the Harmony rows of the file batch by batch, with the raw rows read so far."""
    envelope, read = Envelope(task.config), 0
    gone = task.links.forgotten.get(task.path, ())
    with opened(task.path, task.config, task.links) as file:
        raw.check_columns(task.path, file.names, [*raw.TEXTS, "synth_id"])
        if (wrong := next(wrong_types(file.schema, raw.TEXTS, ()), None)) is not None:
            raise BadInput(task.path, wrong)
        fields = [name for name in task.config.metadata_fields if name in file.names]
        wanted = [*dict.fromkeys([*raw.TEXTS, *fields])]
        for whole in file.batches(_BATCH_ROWS, wanted, row_bytes=RAW_ROW_BYTES):
            batch = whole if task.rows is None else whole.slice(0, task.rows - read)
            for low, high in kept_runs(gone, read, len(batch)):
                rows = RawRows(task.path, read + low, batch.slice(low, high - low))
                yield read + high, envelope.convert(rows, fields, schema)
            read += len(batch)
            if read == task.rows:
                return


_GROUP_BYTES: Final = 128 << 20


class Joiner:
    """Writes parts to a Harmony shard, whose file begins with the first row group."""

    def __init__(self, path: Path, config: HarmonyConfig) -> None:
        self.read = self.rows = self.groups = self.forgotten = 0
        self._path, self._config = path, config
        self._file: HashedFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._digest = RowsDigest()
        self._waiting: list[pa.RecordBatch] = []

    def add(self, part: Path, summary: Mapping[str, Any], raw_file: Path) -> None:
        """Append one part. Raises BadInput if the rows of a row group take too many bytes."""
        import pyarrow as pa

        size = self._config.rows_per_group
        with pa.memory_map(str(part)) as file, pa.ipc.open_stream(file) as batches:
            for batch, read in zip(batches, summary["read"], strict=True):
                self._digest.update(batch)
                self._waiting.append(batch)
                rows = sum(map(len, self._waiting))
                if sum(each.nbytes for each in self._waiting) > _GROUP_BYTES:
                    raise _too_large(raw_file, read, rows, size)
                while rows >= size:
                    self._write_group(size)
                    rows -= size
        self.read += max(summary["read"], default=0)
        self.forgotten += summary["forgotten"]

    def finish(self) -> FileNote | None:
        """Complete the file; return its note, or None if there are no rows and no file."""
        if any(map(len, self._waiting)):
            self._write_group(self._config.rows_per_group)
        self.close()
        if self._file is None:
            return None
        return FileNote(
            rows=self.rows,
            content_sha256=self._digest.hexdigest(),
            sha256=self._file.sha256,
            bytes=self._file.bytes,
        )

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
        if self._file is not None:
            self._file.close()

    def _write_group(self, size: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_batches(self._waiting)
        self._waiting = table.slice(size).to_batches()
        group = table.slice(0, size).combine_chunks()
        if self._writer is None:
            self._file = HashedFile(self._path)
            self._writer = pq.ParquetWriter(self._file, group.schema, compression="zstd")
        self._writer.write_table(group, row_group_size=size)
        self.rows += len(group)
        self.groups += 1


def _too_large(path: Path, row: int, rows: int, group_rows: int) -> BadInput:
    """Return the error for a row group that takes too many bytes."""
    rule = f"{rows:,} Harmony rows up to this raw row take more than"
    return BadInput(
        path,
        f"{rule} {_GROUP_BYTES:,} bytes, and a row group of {group_rows:,} rows must not: lower "
        "rows_per_group in gristmill.toml, or correct the rows",
        row,
    )


@dataclass(frozen=True)
class HarmonySummary(Summary):
    """Counts of one Harmony shard."""

    rows: int
    skipped: int
    row_groups: int
    raw_files: int


def to_harmony(
    raw_files: Sequence[Path],
    out: Path,
    shard_index: int,
    config: HarmonyConfig,
    parts: PartStore | None = None,
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
    parts: store of finished parts, where a killed build continues; default a folder
        in `out` that is removed.
    progress: gets the stage "convert", in raw rows.
    links: what happens to raw files that are links; default: they are refused.

    A shard without rows has no file. Memory does not grow with the number of rows.
    Raises BadInput for a file that is not readable Parquet, is damaged, breaks a limit,
    lacks a column or has it twice, for texts that are not strings or not UTF-8, for a
    kept row without a synth_id, for a file with rows of which none is kept, for
    metadata that JSON cannot hold, and for a row group that takes too much memory.
    Raises ValueError for another shard_index, GristmillError if it gets no raw file.
    """
    run = contiguous_run(raw_files, shard_index, config.num_shards)
    if not run:
        raise GristmillError(
            f"shard {shard_index} of {config.num_shards} gets none of {len(raw_files)} raw files: "
            "add files, or build fewer shards"
        )
    out.mkdir(parents=True)
    name = shard_name(f"{shard_index:02d}")
    tasks, rows = _tasks(run, config, links)
    named = ((f"file_{index:06d}", task) for index, task in enumerate(tasks))
    finished = run_parts(make_part, named, parts, config.workers, scratch=out)
    with closing(Joiner(out / name, config)) as joiner:
        with progress.stage("convert", unit="rows", total=rows) as stage, closing(finished):
            for task, (_, path, summary) in zip(tasks, finished, strict=True):
                _check_kept(task, summary)
                before = joiner.read
                joiner.add(path, summary, task.path)
                stage.advance(joiner.read - before)
        note = joiner.finish()
    files: dict[str, FileNote] = {} if note is None else {name: note}
    skipped = joiner.read - joiner.rows - joiner.forgotten
    return HarmonySummary(files, joiner.rows, skipped, joiner.groups, len(run))


def _check_kept(task: Task, summary: Mapping[str, Any]) -> None:
    """Raise BadInput for a raw file with rows of which none is kept, though all were read."""
    if task.rows is None and any(summary["read"]) and not summary["kept"]:
        texts = f"{', '.join(raw.TEXTS[:-1])} and {raw.TEXTS[-1]}"
        rule = f"none of its {max(summary['read']):,} rows has a {texts}"
        raise BadInput(task.path, f"{rule}: take it out of the drop, or bring one that has them")


def _tasks(run: Sequence[Path], config: HarmonyConfig, links: LinkRule) -> tuple[list[Task], int]:
    """Return a task for each raw file up to the cap, and how many raw rows they read."""
    sizes = []
    for path in run:
        with opened(path, config, links) as file:
            sizes.append(file.rows)
    tasks: list[Task] = []
    left = config.max_rows
    for path, rows in zip(run, sizes, strict=True):
        if config.max_rows >= 0 and left <= rows and rows > 0:
            tasks.append(Task(path, left, config, links))
            return tasks, config.max_rows
        tasks.append(Task(path, None, config, links))
        left -= rows
    return tasks, sum(sizes)
