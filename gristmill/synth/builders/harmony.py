"""The builder of one Harmony shard from raw files: its parts become its Parquet file.

Source: `docs/formats/synth.md#harmony-part-files`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.hashing import HashedFile
from gristmill.inbox.division import contiguous_run
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders import harmony_part
from gristmill.synth.builders.harmony_shard import shard_name
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.row_digest import RowsDigest
from gristmill.synth.raw import files as raw
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_GROUP_BYTES: Final = 128 << 20


class Joiner:
    """Writes parts to a Harmony shard, whose file begins with the first row group."""

    def __init__(self, path: Path, config: HarmonyConfig) -> None:
        self.read = self.rows = self.groups = 0
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
        """Append the first rows that wait as a row group."""
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
    finished = run_parts(harmony_part.make_part, named, parts, config.workers, scratch=out)
    with closing(Joiner(out / name, config)) as joiner:
        with progress.stage("convert", unit="rows", total=rows) as stage, closing(finished):
            for task, (_, path, summary) in zip(tasks, finished, strict=True):
                _check_kept(task, summary)
                before = joiner.read
                joiner.add(path, summary, task.path)
                stage.advance(joiner.read - before)
        note = joiner.finish()
    files: dict[str, FileNote] = {} if note is None else {name: note}
    skipped = joiner.read - joiner.rows
    return HarmonySummary(files, joiner.rows, skipped, joiner.groups, len(run))


def _check_kept(task: harmony_part.Task, summary: Mapping[str, Any]) -> None:
    """Raise BadInput for a raw file with rows of which none is kept, though all were read."""
    if task.rows is None and any(summary["read"]) and not summary["kept"]:
        texts = f"{', '.join(raw.TEXTS[:-1])} and {raw.TEXTS[-1]}"
        rule = f"none of its {max(summary['read']):,} rows has a {texts}"
        raise BadInput(task.path, f"{rule}: take it out of the drop, or bring one that has them")


def _tasks(
    run: Sequence[Path], config: HarmonyConfig, links: LinkRule
) -> tuple[list[harmony_part.Task], int]:
    """Return a task for each raw file up to the cap, and how many raw rows they read."""
    sizes = []
    for path in run:
        with harmony_part.opened(path, config, links) as file:
            sizes.append(file.rows)
    tasks: list[harmony_part.Task] = []
    left = config.max_rows
    for path, rows in zip(run, sizes, strict=True):
        if config.max_rows >= 0 and left <= rows and rows > 0:
            tasks.append(harmony_part.Task(path, left, config, links))
            return tasks, config.max_rows
        tasks.append(harmony_part.Task(path, None, config, links))
        left -= rows
    return tasks, sum(sizes)
