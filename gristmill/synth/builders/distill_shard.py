"""The builder of a dataset of token ids, labels and spans, from a shard of conversations."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from gristmill.contract import BadInput, FileNote
from gristmill.hashing import HashedFile
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders import distill_part
from gristmill.synth.builders.distill_part import (
    TEXTS,
    DistillTask,
    column,
    ends_in_answer,
    make_part,
    texts_of,
)
from gristmill.synth.builders.harmony_shard import MESSAGES, OPTIONAL, open_shard
from gristmill.synth.builders.kd_part import Task
from gristmill.synth.builders.kd_shard import Joiner, KDSummary, build_shard
from gristmill.synth.config import DistillConfig, KDConfig
from gristmill.synth.raw import HARMONY, Render
from gristmill.synth.read import distill
from gristmill.synth.render.documents import Documents
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import Tokenizer

_FILE_BYTES: Final = 512 << 20
_BATCH_ROWS: Final = 1000
_SCANNED_ROWS: Final = 4096


@dataclass(frozen=True)
class DistillSummary(KDSummary):
    """Counts of a dataset; spans are those of its tokens."""

    left_out: Mapping[str, int]
    dropped_thoughts: int
    memorization_keep: float = 1.0
    other_languages_keep: float = 1.0


def build_distill(
    shard: Path,
    out: Path,
    config: DistillConfig,
    tokenizer: Tokenizer,
    parts: PartStore | None = None,
    *,
    dataset: str,
    render: Render | None = None,
    progress: Progress = SILENT,
) -> DistillSummary:
    """Write a shard's splits and its trace. Raises BadInput for no rows, or a missing column."""
    columns, shares = _scanned(shard, config) if render is None else ((), distill_part.Shares())
    is_harmony = config.template == HARMONY if render is None else render.template == HARMONY

    def task_of(task: Task) -> DistillTask:
        return DistillTask(
            **vars(task),
            render=render or Render(),
            tokenizer=tokenizer,
            config=config,
            shares=shares,
            columns=columns,
        )

    summary = build_shard(
        shard,
        out,
        config,
        parts,
        tokenizer=tokenizer,
        make=make_part,
        task_of=task_of,
        joiner_of=partial(_DistillJoiner, dataset, is_harmony, tokenizer.name == O200K.name),
        progress=progress,
    )
    assert isinstance(summary, DistillSummary)
    if not summary.rows:
        reasons = ", ".join(f"{name} {count:,}" for name, count in summary.left_out.items())
        raise BadInput(shard, f"all rows are left out ({reasons}): change the settings")
    return replace(
        summary,
        memorization_keep=shares.memorization,
        other_languages_keep=shares.other_languages,
    )


def _scanned(shard: Path, config: DistillConfig) -> tuple[tuple[str, ...], distill_part.Shares]:
    """The columns to read beside those of a shard, and the shares of rows that stay."""
    with open_shard(shard) as file:
        names = set(file.names)
        if config.template != HARMONY and config.reference and TEXTS[1] not in names:
            rule = f"has no column {TEXTS[1]}, which {config.template} adds to the question"
            cure = "name it in metadata_fields of [synth.harmony], or set reference = false"
            raise BadInput(shard, f"{rule}: {cure}")
        columns = tuple(name for name in TEXTS if name in names)
        if not (config.samples and names.issuperset(OPTIONAL)):
            return columns, distill_part.Shares()
        counts: Counter[tuple[str, str]] = Counter()
        wanted = [MESSAGES, *OPTIONAL, *(name for name in columns if name == TEXTS[0])]
        for batch in file.batches(_SCANNED_ROWS, wanted):
            languages, kinds = (column(batch, name) for name in OPTIONAL)
            constraints = column(batch, TEXTS[0])
            for at, text in enumerate(column(batch, MESSAGES)):
                if constraints[at] or not ends_in_answer(text):
                    try:
                        answer = texts_of(text).answer
                    except (ValueError, KeyError, TypeError, AttributeError):
                        continue  # the row is refused where it is rendered
                    if distill_part.fault(config, constraints[at], answer):
                        continue
                counts[distill_part.label(kinds[at]), distill_part.label(languages[at])] += 1
    return columns, distill_part.shares(config, counts)


class _Stream:
    """The Arrow files of a split."""

    def __init__(self, folder: Path) -> None:
        self.rows: list[int] = []
        self._folder, self._count = folder, 0
        self._waiting: list[pa.RecordBatch] = []
        self._files: list[HashedFile] = []
        folder.mkdir()
        self._open()

    def _open(self) -> None:
        self._files.append(HashedFile(self._folder / f"{len(self._files)}.arrow"))
        self._writer = pa.ipc.new_stream(self._files[-1], distill.SCHEMA)
        self.rows.append(0)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows; the size of batches in the file does not depend on them."""
        self._waiting.append(batch)
        self._count += len(batch)
        if self._count >= _BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        if self._files[-1].bytes > _FILE_BYTES:
            self._close()
            self._open()
        table = pa.Table.from_batches(self._waiting, distill.SCHEMA).combine_chunks()
        self._writer.write_table(table)
        self.rows[-1] += len(table)
        self._waiting, self._count = [], 0

    def _close(self) -> None:
        self._writer.close()
        self._files[-1].close()

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None and self._waiting:
            self._write()
        self._close()

    def finished(self, split: str) -> Iterable[tuple[str, FileNote]]:
        """Name the files, write what `datasets` reads beside them, and yield all with notes."""
        names = []
        for number, (file, rows) in enumerate(zip(self._files, self.rows, strict=True)):
            names.append(f"data-{number:05d}-of-{len(self._files):05d}.arrow")
            (self._folder / f"{number}.arrow").rename(self._folder / names[-1])
            note = FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)
            yield f"{self._folder.name}/{names[-1]}", note
        digest = hashlib.sha256("".join(file.sha256 for file in self._files).encode())
        state: dict[str, Any] = {
            "_data_files": [{"filename": name} for name in names],
            "_fingerprint": digest.hexdigest()[:16],
            **dict.fromkeys(("_format_columns", "_format_type")),
            "_format_kwargs": {},
            "_output_all_columns": False,
            "_split": split,
        }
        info = {"citation": "", "description": "", "features": None, "homepage": "", "license": ""}
        for name, value in ((distill.STATE, state), ("dataset_info.json", info)):
            (self._folder / name).write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
            yield f"{self._folder.name}/{name}", FileNote()


class _DistillJoiner(Joiner):
    """Appends parts to the rows of a dataset."""

    summary_type = DistillSummary
    texts = (*Joiner.texts, "dropped_thoughts")
    names = (*Joiner.names, "left_out")

    def __init__(
        self,
        dataset: str,
        is_harmony: bool,
        returns: bool,
        out: Path,
        number: str,
        config: KDConfig,
    ) -> None:
        super().__init__(out, number, config)
        self._dataset, self._is_harmony, self._returns = dataset, is_harmony, returns
        self._streams = {
            split: self.open.enter_context(_Stream(out / folder))
            for split, folder in distill.SPLITS.items()
        }

    def _append(self, split: str, documents: Documents, names: pa.RecordBatch) -> None:
        own = names.filter(pc.equal(names["split"], split)).select(["synth_id", *OPTIONAL])
        labels = [[distill_part.label(text) for text in own[name].to_pylist()] for name in OPTIONAL]
        texts = [own["synth_id"], *(pa.array(each, pa.string()) for each in labels)]
        found = distill.answers(documents, self._is_harmony)
        named = pa.RecordBatch.from_arrays(texts, ["synth_id", *OPTIONAL])
        rows = distill.rows(documents.tokens, found, named, self._dataset, self._returns)
        self._streams[split].add(rows)
        self._rows[split] += len(documents.lengths)
        self._tokens[split] += int((found.end - found.first).sum())
        prompt = (found.start - found.first).sum()
        self._spans += [prompt, found.reasoning.sum(), found.final.sum()]

    def _written(self) -> dict[str, FileNote]:
        path = self._out / distill.DICT
        path.write_bytes(orjson.dumps({"splits": [*distill.SPLITS.values()]}))
        files = {distill.DICT: FileNote()}
        for folder, stream in zip(distill.SPLITS.values(), self._streams.values(), strict=True):
            files.update(stream.finished(folder))
        return files
