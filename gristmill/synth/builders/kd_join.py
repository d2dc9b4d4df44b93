"""The parts of a shard become its files: Megatron datasets, trace, quarantine.

Source: `docs/formats/synth.md#dataset-files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import FileNote, Summary
from gristmill.synth.builders import kd_part, kd_part_file
from gristmill.synth.config import ChatKDConfig, KDConfig
from gristmill.synth.format import aligned, harmony_tokens, quarantine, trace
from gristmill.synth.format.indexed import IndexedWriter
from gristmill.synth.render.documents import Documents

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
    """Appends parts to the files of a shard, and sums their counts.

    Enter `open` before the first part; its exit completes the files.
    """

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
        self._rows = dict.fromkeys(kd_part_file.SPLITS, 0)
        self._tokens = dict.fromkeys(kd_part_file.SPLITS, 0)
        self._spans = np.zeros(3, dtype=np.int64)
        self._texts: Counter[str] = Counter()
        self._names: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        # Of all parts, those that only count included.
        self._made = {"documents": 0, "tokens": 0}
        tables = ("[chat.kd_shards]",) if isinstance(config, ChatKDConfig) else ()
        self.bad = quarantine.BadRows(config.bad_rows, *tables)
        self._quarantine = self.open.enter_context(quarantine.QuarantineWriter(out, number))

    def capped(self, tasks: Iterator[kd_part.Task]) -> Iterator[kd_part.Task]:
        """Yield the tasks with the rest of both caps, until a cap is reached.

        tasks: of the shard, without caps. The next one may be taken only after the
            part of the one before was added.
        """
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

    def add(self, part: Path, summary: Mapping[str, Any]) -> None:
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
        for batch in kd_part_file.read(part):
            self._quarantine.add(batch.refused)
            table = pa.ipc.read_record_batch(pa.py_buffer(batch.trace), trace.schema())
            table = self._numbered(table)
            self._trace.add(table)
            for split, documents in batch.documents.items():
                if len(documents.lengths):
                    self._append(split, documents, table)

    def check(self, shard: Path) -> None:
        """Raise BadInput where too many rows are bad, or none is good. Call it after the last part.

        shard: the Harmony shard.
        """
        self.bad.check(shard, self._made["documents"])

    def _numbered(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """Return the trace of a batch with documents counted over the whole shard."""
        import pyarrow as pa

        splits = table.column("split").to_numpy(zero_copy_only=False)
        before = np.where(splits == "train", self._rows["train"], self._rows["valid"])
        numbers = pa.array(table.column("document").to_numpy() + before)
        return table.set_column(1, table.schema.field(1), numbers)

    def _append(self, split: str, documents: Documents, names: pa.RecordBatch) -> None:
        """Append the documents of a split. names: rows of the trace, also of the other split."""
        if split not in self._writers:
            # Not before its first document: an empty split has no files.
            self._writers[split] = {
                suffix: self.open.enter_context(
                    IndexedWriter(self._out / split / f"shard_{self._number}_{suffix}", dtype)
                )
                for suffix, dtype in aligned.DTYPES.items()
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
        found: KDSummary = self.summary_type(
            files=self._files(rows),
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

    def _files(self, rows: int) -> dict[str, FileNote]:
        files = self._written()
        digest = self._trace.content_sha256()
        files[trace.path(self._number)] = FileNote(rows=rows, content_sha256=digest)
        if self._quarantine.rows:
            files[quarantine.path(self._number)] = FileNote(rows=self._quarantine.rows)
        return files

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
