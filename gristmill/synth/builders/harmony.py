"""The builder of one Harmony shard from raw files: its parts become its Parquet file."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.hashing import HashedFile
from gristmill.inbox.division import contiguous_run
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import threaded_map
from gristmill.synth.builders import harmony_part
from gristmill.synth.builders.harmony_shard import shard_name
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.parquet_footer import RowGroupsWriter
from gristmill.synth.format.row_digest import RowsDigest
from gristmill.synth.raw import files as raw
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

if TYPE_CHECKING:
    import pyarrow as pa


class Joiner:
    """Appends parts to a Harmony shard, whose file begins with the first row group."""

    def __init__(self, path: Path, config: HarmonyConfig) -> None:
        self.read = 0
        self._path, self._config = path, config
        self._file: HashedFile | None = None
        self._groups = RowGroupsWriter(self)
        self._digest = RowsDigest()
        self._has_digested = False
        self._waiting: list[pa.RecordBatch] = []

    @property
    def rows(self) -> int:
        """Number of Harmony rows so far."""
        return self._groups.rows + self.under_way

    @property
    def groups(self) -> int:
        """Number of row groups so far."""
        return self._groups.groups

    @property
    def under_way(self) -> int:
        """Number of rows in the row group that is not full."""
        return sum(map(len, self._waiting))

    def make(self, task: harmony_part.Task, path: Path) -> dict[str, Any]:
        """Make a part in this process, which is added next: its rows are not decoded for it.

        As `harmony_part.make_part`.
        """
        summary = harmony_part.make_part(task, path, self._digest.update)
        self._has_digested = True
        return summary

    def add(self, part: Path, summary: Mapping[str, Any], raw_file: Path) -> None:
        """Append one part.

        Raises BadInput if the rows of a row group take too many bytes, and for a raw file that
        had other rows when they were counted.
        """
        import pyarrow as pa

        if summary["before"] != self.under_way:
            rule = "this file, or one before it, was changed while it was read: start again"
            raise BadInput(raw_file, rule)
        self.read += summary["read"]
        with pa.memory_map(str(part)) as file:
            groups, head, tail = map(file.read_buffer, summary["sizes"])
            self._check(summary["head"], raw_file)
            self._waiting += _rows(head)
            if self.under_way == self._config.rows_per_group:
                self._flush()
            if groups.size:
                self._groups.add(memoryview(groups))
            self._waiting += _rows(tail)
            if not self._has_digested:
                for batch in chain(_rows(head), _decoded(groups), _rows(tail)):
                    self._digest.update(batch)
        self._has_digested = False

    def finish(self) -> FileNote | None:
        """Complete the file; return its note, or None if there are no rows and no file."""
        if self.under_way:
            self._flush()
        self._groups.finish()
        if self._file is None:
            return None
        return FileNote(
            rows=self.rows,
            content_sha256=self._digest.hexdigest(),
            sha256=self._file.sha256,
            bytes=self._file.bytes,
        )

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append bytes to the file: `RowGroupsWriter` calls this."""
        if self._file is None:
            self._file = HashedFile(self._path)
        return self._file.write(data)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _check(self, batches: list[list[int]], raw_file: Path) -> None:
        """Compare the rows that wait with the limit after each batch that gives some of them."""
        rows, size = self.under_way, sum(batch.nbytes for batch in self._waiting)
        for row, more, added in batches:
            rows, size = rows + more, size + added
            if harmony_part.is_too_large(size):
                raise harmony_part.too_large(raw_file, row, rows, self._config.rows_per_group)

    def _flush(self) -> None:
        """Append the rows that wait as a row group."""
        import pyarrow as pa

        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting = []
        sink = pa.BufferOutputStream()
        with harmony_part.group_writer(sink, table.schema) as writer:
            writer.write_table(table, row_group_size=len(table))
        self._groups.add(memoryview(sink.getvalue()))


def _rows(stream: pa.Buffer) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with pa.ipc.open_stream(stream) as reader:
        yield from reader


def _decoded(groups: pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part's row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not groups.size:
        return
    with closing(pq.ParquetFile(pa.BufferReader(groups))) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group, use_threads=False).to_batches()


_CONVERTED_AS_COUNTED: Final = 6
"""Workers that convert about as many rows as one thread counts."""


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
    with closing(Joiner(out / name, config)) as joiner:
        made = _made(tasks, joiner, parts, out)
        with progress.stage("convert", unit="rows", total=rows) as stage, closing(made):
            for task, path, summary in made:
                _check_kept(task, summary)
                joiner.add(path, summary, task.path)
                stage.advance(summary["read"])
        note = joiner.finish()
    files: dict[str, FileNote] = {} if note is None else {name: note}
    skipped = joiner.read - joiner.rows
    return HarmonySummary(files, joiner.rows, skipped, joiner.groups, len(run))


def _check_kept(task: harmony_part.Task, summary: Mapping[str, Any]) -> None:
    """Raise BadInput for a raw file with rows of which none is kept, though all were read."""
    if task.rows is None and summary["read"] and not summary["kept"]:
        texts = f"{', '.join(raw.TEXTS[:-1])} and {raw.TEXTS[-1]}"
        rule = f"none of its {summary['read']:,} rows has a {texts}"
        raise BadInput(task.path, f"{rule}: take it out of the drop, or bring one that has them")


def _tasks(
    run: Sequence[Path], config: HarmonyConfig, links: LinkRule
) -> tuple[list[harmony_part.Task], int]:
    """Return a task for each raw file up to the cap, and how many raw rows they read."""
    sizes, expected = [], []
    for path in run:
        with harmony_part.opened(path, config, links) as file:
            sizes.append(file.rows)
            expected.append(file.filled_at_most(raw.TEXTS) if config.workers > 1 else None)
    tasks: list[harmony_part.Task] = []
    left = config.max_rows
    for path, rows, kept in zip(run, sizes, expected, strict=True):
        last = config.max_rows >= 0 and left <= rows and rows > 0
        if last:
            tasks.append(harmony_part.Task(path, left, 0, config, links))
            return tasks, config.max_rows
        tasks.append(harmony_part.Task(path, None, 0, config, links, kept))
        left -= rows
    return tasks, sum(sizes)


def _made(
    tasks: Sequence[harmony_part.Task], joiner: Joiner, parts: PartStore | None, out: Path
) -> Generator[tuple[harmony_part.Task, Path, dict[str, Any]]]:
    """Yield each task with the file of its part and the part's summary, which are added next."""
    workers = tasks[0].config.workers
    make = joiner.make if workers <= 1 else harmony_part.make_part
    done = 0
    while done < len(tasks):
        uncounted: list[harmony_part.NotCounted] = []
        named = _named(tasks, done, joiner, parts, out, uncounted)
        finished = run_parts(make, named, parts, workers, scratch=out)
        with closing(named), closing(finished):
            for task, (_, path, summary) in zip(tasks[done:], finished, strict=False):
                yield task, path, summary
                done += 1
                if task.expected not in (None, summary["kept"]):
                    # The parts after it begin at wrong rows, and so may those of other files.
                    tasks = [replace(each, expected=None) for each in tasks]
                    break
            if uncounted:
                raise GristmillError(f"{uncounted[0]}: build again") from uncounted[0]


def _named(
    tasks: Sequence[harmony_part.Task],
    done: int,
    joiner: Joiner,
    parts: PartStore | None,
    out: Path,
    uncounted: list[harmony_part.NotCounted],
) -> Generator[tuple[str, harmony_part.Task]]:
    """Yield the tasks with the rows that the row group under way has, and the parts' names."""
    size, workers = tasks[0].config.rows_per_group, tasks[0].config.workers
    if workers <= 1:
        # Each part is added before the next task is asked for.
        for index, task in enumerate(tasks[done:], done):
            yield _part(index, replace(task, before=joiner.under_way))
        return
    before = joiner.under_way
    counting = (
        (f"count_{index:06d}", task)
        for index, task in enumerate(tasks[:-1])
        if index >= done and task.expected is None
    )
    # A thread waits for the child process that reads, so it needs no process of its own.
    threads = 1 + workers // _CONVERTED_AS_COUNTED
    counted = run_parts(
        harmony_part.count, counting, parts, threads, scratch=out, engine=threaded_map
    )
    with closing(counted):
        for index, task in enumerate(tasks[done:], done):
            yield _part(index, replace(task, before=before))
            if index + 1 == len(tasks):
                return
            kept = task.expected
            if kept is None:
                try:
                    _, _, summary = next(counted)
                except harmony_part.NotCounted as error:
                    uncounted.append(error)
                    return  # making the part says why, unless the counting alone failed
                kept = summary["kept"]
            before = (before + kept) % size


def _part(index: int, task: harmony_part.Task) -> tuple[str, harmony_part.Task]:
    """Return a task with the name of its part, whose bytes depend on the rows before it, too."""
    return f"file_{index:06d}_{task.before}", task
