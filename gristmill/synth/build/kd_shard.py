"""From one Harmony shard to the Megatron datasets of that shard: the parts, joined in order.

See also `kd_part.py`: some rows to a part; `kd_manifest.py`: the manifest over
all shards. Source: `docs/formats/synth.md#dataset-files`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.build import kd_part, kd_part_file
from gristmill.synth.config import KDConfig
from gristmill.synth.format import harmony_tokens, trace
from gristmill.synth.format.indexed import IndexedWriter
from gristmill.synth.render.documents import Documents

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES: Final = {"tokens": "<i4", "lossmask": "u1", "span": "u1"}
_PART_ROWS: Final = 4096
_NAMES_SHOWN: Final = 40


@dataclass(frozen=True)
class KDSummary(Summary):
    """Counts of one shard. rows are documents, `rows` those of both; tokens include every EOD.

    spans: tokens of each span by its label, over both splits.
    control_texts: control-token texts that stood in contents and stayed plain text.
    bad_rows: rows set aside.
    """

    rows: int
    train_rows: int
    train_tokens: int
    valid_rows: int
    valid_tokens: int
    control_texts: int
    bad_rows: int
    spans: Mapping[str, int]
    languages: Mapping[str, int]
    exercises: Mapping[str, int]


def shard_number(harmony_shard: Path) -> str:
    """The two-digit number of `..shard_XX..`. BadInput where the name has none."""
    if (match := re.search(r"shard_(\d+)", harmony_shard.name)) is None:
        raise BadInput(harmony_shard, "no `shard_<number>` in the file name")
    return f"{int(match[1]):02d}"


def build_kd_shard(
    harmony_shard: Path,
    out: Path,
    config: KDConfig,
    parts: PartStore | None = None,
    *,
    progress: Progress = SILENT,
) -> KDSummary:
    """Write `{train,valid}/shard_XX_{tokens,lossmask,span}.{bin,idx}` and the trace.

    A split without documents has no files.

    parts: store of finished parts, where a killed build goes on.
    progress: gets the stage "render", in rows; how many there are is not known
        where `max_rows` or `max_tokens` caps them.

    Raises BadInput with shard, row,
    synth_id and rule for the first row that cannot be rendered, or the first
    one beyond `config.bad_rows`.
    """
    number = shard_number(harmony_shard)
    out.mkdir(parents=True)
    joiner = _Joiner(out, number, config)
    with joiner.open:
        tasks = list(_tasks(harmony_shard, config))
        total = None if config.capped else sum(task.input_rows for task in tasks)
        stage = joiner.open.enter_context(progress.stage("render", unit="rows", total=total))
        named = (
            (f"rows_{index:06d}", task) for index, task in enumerate(joiner.capped(iter(tasks)))
        )
        # How much a capped part may take depends on all parts before it.
        workers = 1 if config.capped else config.workers
        finished = run_parts(kd_part.make_part, named, parts, workers, scratch=out)
        with closing(finished):
            for (_, path, summary), task in zip(finished, tasks, strict=False):
                joiner.add(path, summary, harmony_shard)
                stage.advance(summary["documents"] if config.capped else task.input_rows)
    return joiner.summary()


def _tasks(shard: Path, config: KDConfig) -> Iterator[kd_part.Task]:
    """Tasks of whole row groups with at least `_PART_ROWS` rows, but for the last."""
    with kd_part.open_shard(shard) as parquet:
        if (wrong := next(kd_part.wrong_types(parquet.schema_arrow), None)) is not None:
            raise BadInput(shard, f"{wrong}: is it a Harmony shard?")
        sizes = [
            parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)
        ]
    first_row = rows = 0
    groups: list[int] = []
    for group, size in enumerate(sizes):
        groups.append(group)
        rows += size
        if rows >= _PART_ROWS or group == len(sizes) - 1:
            yield kd_part.Task(
                shard=shard,
                row_groups=groups,
                first_row=first_row,
                input_rows=rows,
                valid_fraction=config.valid_fraction,
                vocabulary=config.vocabulary,
                bad_rows=config.bad_rows,
                rows=None,
                tokens=None,
            )
            first_row, rows, groups = first_row + rows, 0, []


class _Joiner:
    """Appends parts to the files of the shard and adds up what they count."""

    def __init__(self, out: Path, number: str, config: KDConfig) -> None:
        self.open = ExitStack()
        self._out, self._number, self._config = out, number, config
        self._writers: dict[str, dict[str, IndexedWriter]] = {}
        trace_file = out / trace.path(number)
        self._trace = self.open.enter_context(trace.TraceWriter(trace_file))
        self._rows = dict.fromkeys(kd_part_file.SPLITS, 0)
        self._tokens = dict.fromkeys(kd_part_file.SPLITS, 0)
        self._spans = np.zeros(3, dtype=np.int64)
        self._control_texts = 0
        self._languages: Counter[str] = Counter()
        self._exercises: Counter[str] = Counter()
        self._bad: list[list[Any]] = []

    def capped(self, tasks: Iterator[kd_part.Task]) -> Iterator[kd_part.Task]:
        """The tasks, each with what the caps still leave, until nothing is left."""
        for task in tasks:
            rows = self._config.max_rows - sum(self._rows.values())
            tokens = self._config.max_tokens - sum(self._tokens.values())
            if (self._config.max_rows >= 0 and rows <= 0) or (
                self._config.max_tokens >= 0 and tokens <= 0
            ):
                return
            yield replace(
                task,
                rows=rows if self._config.max_rows >= 0 else None,
                tokens=tokens if self._config.max_tokens >= 0 else None,
            )

    def add(self, part: Path, summary: Mapping[str, Any], shard: Path) -> None:
        import pyarrow as pa

        self._bad += summary["bad"]
        if len(self._bad) > self._config.bad_rows:
            row, synth_id, rule = self._bad[self._config.bad_rows]
            raise BadInput(
                shard,
                f"synth_id {synth_id!r}: {rule} (one bad row more than the "
                f"{self._config.bad_rows} that may be set aside)",
                row,
            )
        self._control_texts += summary["control_texts"]
        self._languages.update(summary["languages"])
        self._exercises.update(summary["exercises"])
        for batch in kd_part_file.read(part):
            table = pa.ipc.read_record_batch(pa.py_buffer(batch.trace), trace.schema())
            self._trace.add(self._numbered(table))
            for split, documents in batch.documents.items():
                if len(documents.lengths):
                    self._append(split, documents)

    def _numbered(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """The trace of a batch with documents counted from the shard's beginning."""
        import pyarrow as pa

        names = table.column("split").to_numpy(zero_copy_only=False)
        before = np.where(names == "train", self._rows["train"], self._rows["valid"])
        numbers = pa.array(table.column("document").to_numpy() + before)
        return table.set_column(1, table.schema.field(1), numbers)

    def _append(self, split: str, documents: Documents) -> None:
        if split not in self._writers:
            # Only now: a split without documents has no files.
            self._writers[split] = {
                suffix: self.open.enter_context(
                    IndexedWriter(self._out / split / f"shard_{self._number}_{suffix}", dtype)
                )
                for suffix, dtype in SUFFIXES.items()
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
        # bincount would first make 8 bytes of each.
        final = np.count_nonzero(documents.span == harmony_tokens.FINAL)
        supervised = np.count_nonzero(documents.span)
        self._spans += [len(documents.span) - supervised, supervised - final, final]

    def summary(self) -> KDSummary:
        files = {
            f"{split}/shard_{self._number}_{suffix}.{kind}": FileNote(rows=self._rows[split])
            for split in self._writers
            for suffix in SUFFIXES
            for kind in ("bin", "idx")
        }
        rows = sum(self._rows.values())
        files[trace.path(self._number)] = FileNote(
            rows=rows, content_sha256=self._trace.content_sha256()
        )
        if self._bad:
            name = f"quarantine/quarantine_{self._number}.jsonl"
            files[name] = FileNote(rows=len(self._bad))
            self._write_bad(self._out / name)
        return KDSummary(
            files=files,
            rows=rows,
            train_rows=self._rows["train"],
            train_tokens=self._tokens["train"],
            valid_rows=self._rows["valid"],
            valid_tokens=self._tokens["valid"],
            control_texts=self._control_texts,
            bad_rows=len(self._bad),
            spans=dict(zip(("prompt", "reasoning", "final"), self._spans.tolist(), strict=True)),
            languages=_most(self._languages),
            exercises=_most(self._exercises),
        )

    def _write_bad(self, path: Path) -> None:
        path.parent.mkdir()
        with path.open("w", encoding="utf-8") as file:
            for row, synth_id, rule in self._bad:
                entry = {"shard": self._number, "row": row, "synth_id": synth_id, "rule": rule}
                file.write(json.dumps(entry) + "\n")


def _most(counter: Counter[str]) -> dict[str, int]:
    """The most frequent names, and the sum of the rest as `other`."""
    shown = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    most = dict(shown[:_NAMES_SHOWN])
    if rest := sum(count for _, count in shown[_NAMES_SHOWN:]):
        most["other"] = most.get("other", 0) + rest
    return most
