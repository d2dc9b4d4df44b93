"""The builder of the Megatron datasets of one shard: its parts become datasets, trace, quarantine.

Source: `docs/formats/synth.md#dataset-files`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.run.parts import PartStore, needs_file, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders import kd_part
from gristmill.synth.builders.harmony_shard import open_shard, wrong_types
from gristmill.synth.config import REFUSE, ChatKDConfig, KDConfig
from gristmill.synth.format import harmony_tokens, megatron, quarantine, trace
from gristmill.synth.format.megatron import IndexedWriter
from gristmill.synth.render.documents import Documents
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import O200K, TokenizerFile, file_of_pinned

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES_SHOWN: Final = 40
_NAMES: Final = ("languages", "exercises", "unknown_keys")
_TEXTS: Final = ("control_texts", "fast_texts", "tiktoken_texts", "compared_rows")


@dataclass(frozen=True)
class KDSummary(Summary):
    """Counts of one shard. Tokens include every EOD."""

    rows: int
    train_rows: int
    train_tokens: int
    valid_rows: int
    valid_tokens: int
    control_texts: int
    fast_texts: int
    tiktoken_texts: int
    compared_rows: int
    bad_rows: int
    spans: Mapping[str, int]
    languages: Mapping[str, int]
    exercises: Mapping[str, int]
    unknown_keys: Mapping[str, int]


class Joiner:
    """Appends parts to a shard's files and sums their counts. Its exit completes the files."""

    summary_type: type[Any] = KDSummary
    texts: Sequence[str] = _TEXTS
    """Numbers of the summary that parts give."""
    names: Sequence[str] = _NAMES
    """Counts by name that they give."""

    def __init__(self, out: Path, number: str, config: KDConfig) -> None:
        self.open = ExitStack()
        self._out, self._number, self._config = out, number, config
        self._writers: dict[str, dict[str, IndexedWriter]] = {}
        trace_file = out / trace.path(number)
        self._trace = self.open.enter_context(trace.TraceWriter(trace_file))
        self._rows = dict.fromkeys(kd_part.SPLITS, 0)
        self._tokens = dict.fromkeys(kd_part.SPLITS, 0)
        self._spans = np.zeros(3, dtype=np.int64)
        self._texts: Counter[str] = Counter()
        self._names: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        # Of all parts, those that only count included.
        self._made = {"documents": 0, "tokens": 0}
        tables = ("[chat.kd_shards]",) if isinstance(config, ChatKDConfig) else ()
        self.bad = quarantine.BadRows(config.bad_rows, *tables)
        self._quarantine = self.open.enter_context(quarantine.QuarantineWriter(out, number))

    def capped(self, tasks: Iterator[kd_part.Task]) -> Iterator[kd_part.Task]:
        """Yield the tasks with the rest of both caps, each after the part before was added."""
        for task in tasks:
            rows = self._config.max_rows - self._made["documents"]
            tokens = self._config.max_tokens - self._made["tokens"]
            if (self._config.max_rows >= 0 and rows <= 0) or (
                self._config.max_tokens >= 0 and tokens <= 0
            ):
                return
            yield replace(
                task,
                rows=rows if self._config.max_rows >= 0 else None,
                tokens=tokens if self._config.max_tokens >= 0 else None,
            )

    def add(self, part: Iterable[kd_part.Batch], summary: Mapping[str, Any]) -> None:
        """Append one part. Where all parts so far have too many bad rows, it only counts."""
        import pyarrow as pa

        for name in self._made:
            self._made[name] += summary[name]
        self.bad.add(summary["bad_rows"], summary["first_bad_rows"])
        if self.bad.too_many:
            return
        self._texts.update({name: summary[name] for name in self.texts})
        for name, counter in self._names.items():
            counter.update(summary[name])
        for batch in part:
            self._quarantine.add(batch.refused)
            table = pa.ipc.read_record_batch(pa.py_buffer(batch.trace), trace.schema())
            splits = table.column("split").to_numpy(zero_copy_only=False)
            before = np.where(splits == "train", self._rows["train"], self._rows["valid"])
            numbers = pa.array(table.column("document").to_numpy() + before)
            table = table.set_column(1, table.schema.field(1), numbers)
            self._trace.add(table)
            for split, documents in batch.documents.items():
                if len(documents.lengths):
                    self._append(split, documents, table)

    def check(self, shard: Path) -> None:
        """Raise BadInput where too many rows are bad, or none is good; after the last part."""
        self.bad.check(shard, self._made["documents"])

    def _append(self, split: str, documents: Documents, names: pa.RecordBatch) -> None:
        """Append the documents of a split. names: rows of the trace, also of the other split."""
        if split not in self._writers:
            # Not before its first document: an empty split has no files.
            self._writers[split] = {
                suffix: self.open.enter_context(
                    IndexedWriter(self._out / split / f"shard_{self._number}_{suffix}", dtype)
                )
                for suffix, dtype in megatron.DTYPES.items()
            }
        arrays = {
            "tokens": documents.tokens,
            "lossmask": (documents.span != 0).view(np.uint8),
            "span": documents.span,
        }
        for suffix, writer in self._writers[split].items():
            writer.add(arrays[suffix], documents.lengths)
        self._rows[split] += len(documents.lengths)
        self._tokens[split] += len(documents.tokens)
        # np.bincount would first widen each value to 8 bytes.
        final = np.count_nonzero(documents.span == harmony_tokens.FINAL)
        supervised = np.count_nonzero(documents.span)
        self._spans += [len(documents.span) - supervised, supervised - final, final]

    def summary(self) -> KDSummary:
        """Return the counts of the shard. Call it after the exit of `open`."""
        rows = sum(self._rows.values())
        files = self._written()
        digest = self._trace.content_sha256()
        files[trace.path(self._number)] = FileNote(rows=rows, content_sha256=digest)
        if self._quarantine.rows:
            files[quarantine.path(self._number)] = FileNote(rows=self._quarantine.rows)
        found: KDSummary = self.summary_type(
            files=files,
            rows=rows,
            train_rows=self._rows["train"],
            train_tokens=self._tokens["train"],
            valid_rows=self._rows["valid"],
            valid_tokens=self._tokens["valid"],
            **{name: self._texts[name] for name in self.texts},
            bad_rows=self.bad.count,
            spans=dict(zip(harmony_tokens.SPANS, self._spans.tolist(), strict=True)),
            **{name: _most_frequent(counter) for name, counter in self._names.items()},
        )
        return found

    def _written(self) -> dict[str, FileNote]:
        """The files of the documents."""
        files = {}
        for split, writers in self._writers.items():
            for suffix, writer in writers.items():
                name = f"{split}/shard_{self._number}_{suffix}"
                files[f"{name}.bin"] = writer.note()
                files[f"{name}.idx"] = FileNote(rows=self._rows[split])
        return files


def _most_frequent(counter: Counter[str]) -> dict[str, int]:
    """Return the most frequent names, and the sum of the rest as `other`."""
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    names = dict(ordered[:_NAMES_SHOWN])
    if rest := sum(count for _, count in ordered[_NAMES_SHOWN:]):
        names["other"] = names.get("other", 0) + rest
    return names


_PART_ROWS: Final = 4096
_MOST_ROWS: Final = 2 * _PART_ROWS
"""Rows of a part that may be in memory as a whole."""


def shard_number(harmony_shard: Path) -> str:
    """Return the number of a shard in two digits. Raises BadInput if the name has no number."""
    if (match := re.search(r"shard_(\d+)", harmony_shard.name)) is None:
        raise BadInput(harmony_shard, "no `shard_<number>` in the file name: rename the file")
    return f"{int(match[1]):02d}"


def build_kd_shard(
    harmony_shard: Path | str,
    out: Path | str,
    config: KDConfig,
    parts: PartStore | None = None,
    *,
    is_own: bool = False,
    progress: Progress = SILENT,
) -> KDSummary:
    """Write `{train,valid}/shard_XX_{tokens,lossmask,span}.{bin,idx}` and the trace.

    harmony_shard: the Parquet file.
    out: folder to write, which must not exist.
    config: of the shard.
    parts: store of finished parts, where a killed build continues; default a folder
        in `out` that is removed.
    is_own: whether the shard is ours, and its bytes are proved; default False: a child process
        reads it.
    progress: gets the stage "render", in rows; the total is unknown under a cap.

    A split without documents has no files. Memory does not grow with the number of
    rows. Raises BadInput for another vocabulary or none, for a shard of no rows, and where
    more rows than `config.bad_rows` cannot be rendered, or all. All parts are made before:
    the error has the number of these rows, and row, synth_id and rule of the first of them,
    and another build with the same parts and a greater bound makes no part again.
    """
    where = Path(harmony_shard), Path(out)
    return build_shard(*where, config, parts, is_own=is_own, progress=progress)


def build_shard(
    harmony_shard: Path,
    out: Path,
    config: KDConfig,
    parts: PartStore | None = None,
    *,
    is_own: bool = False,
    tokenizer: TokenizerFile | None = None,
    part_of: kd_part.PartOf = kd_part.Part,
    task_of: Callable[[kd_part.Task], kd_part.Task] = lambda task: task,
    joiner_of: Callable[[Path, str, Any], Joiner] = Joiner,
    progress: Progress = SILENT,
) -> KDSummary:
    """As `build_kd_shard`, for rows that are rendered in another way.

    part_of: of a task. task_of: takes a task for Harmony, and returns one for `part_of`.
    joiner_of: takes folder, number and config, and returns what joins the parts.
    """
    number = shard_number(harmony_shard)
    # Before anything is written.
    (tokenizer or file_of_pinned(O200K, config.vocabulary)).read()
    out.mkdir(parents=True)
    joiner = joiner_of(out, number, config)
    with joiner.open:
        tasks = list(_tasks(harmony_shard, config, is_own))
        total = None if config.capped else sum(task.input_rows for task in tasks)
        stage = joiner.open.enter_context(progress.stage("render", unit="rows", total=total))
        # Parts of the engine that a user has turned off are not used again.
        prefix = "rows" if config.engine == AUTO else f"{config.engine}_rows"
        named = (
            (f"{prefix}_{index:06d}", task_of(task))
            for index, task in enumerate(joiner.capped(iter(tasks)))
        )
        # The rest of a cap is known only after all parts before.
        workers = 1 if config.capped else config.workers
        finished = _finished(part_of, named, parts, workers, out)
        with closing(finished):
            for (batches, summary), task in zip(finished, tasks, strict=False):
                joiner.add(batches, summary)
                stage.advance(summary["documents"] if config.capped else task.input_rows)
        joiner.check(harmony_shard)
    return joiner.summary()


def _finished(
    part_of: kd_part.PartOf,
    tasks: Iterable[tuple[str, kd_part.Task]],
    parts: PartStore | None,
    workers: int,
    scratch: Path,
) -> Generator[tuple[Iterable[kd_part.Batch], dict[str, Any]]]:
    """Yield the batches of each part and its summary; a small part that needs no file has none."""
    run = partial(run_parts, partial(kd_part.make_part, part_of), scratch=scratch)
    if workers > 1:
        yield from ((kd_part.read(path), made) for _, path, made in run(tasks, parts, workers))
        return
    for name, task in tasks:
        if task.input_rows <= _MOST_ROWS and not needs_file(parts, name):
            part = part_of(task)
            yield list(part.batches()), part.counts()
            continue
        for _, path, made in run([(name, task)], parts, 1):
            yield kd_part.read(path), made


def _tasks(shard: Path, config: KDConfig, is_own: bool) -> Iterator[kd_part.Task]:
    """Yield tasks of whole row groups with at least `_PART_ROWS` rows, but for the last."""
    with open_shard(shard, is_own=is_own) as file:
        if (wrong := next(wrong_types(file.schema), None)) is not None:
            raise BadInput(shard, f"{wrong}: is it a Harmony shard?")
        sizes = file.groups
    if not sum(sizes):
        raise BadInput(shard, "has no rows: give the shard a row, since a dataset needs all shards")
    first_row = rows = 0
    groups: list[int] = []
    for group, size in enumerate(sizes):
        groups.append(group)
        rows += size
        if rows >= _PART_ROWS or group == len(sizes) - 1:
            yield kd_part.Task(
                shard=shard,
                is_own=is_own,
                row_groups=groups,
                first_row=first_row,
                input_rows=rows,
                valid_fraction=config.valid_fraction,
                vocabulary=config.vocabulary,
                engine=config.engine,
                refuses_unknown_keys=config.unknown_keys == REFUSE,
                rows=None,
                tokens=None,
            )
            first_row, rows, groups = first_row + rows, 0, []
