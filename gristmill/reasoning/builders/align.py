"""The builder of the alignment of one split: its steps in characters and in tokens.

See also `align_part.py`: some records to a part; `render/steps.py`: what a step is.
Source: `docs/formats/reasoning.md#alignment`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import HashedFile
from gristmill.reasoning.builders import align_part
from gristmill.reasoning.builders.align_part import BINS, Task
from gristmill.reasoning.config import AlignConfig, CorpusAlignConfig
from gristmill.reasoning.format import audits as verdicts
from gristmill.reasoning.format import names
from gristmill.reasoning.format.corpora import is_key
from gristmill.reasoning.render.steps import NO_STEPS, RULES
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import GPT2, read_verified

_PART_BYTES: Final = 8 << 20
_READ_BYTES: Final = 1 << 20
_RECORD: Final = re.compile(rb'\{"example_id": "[a-z0-9_]+_([0-9]{6,})"')


@dataclass(frozen=True)
class AlignSummary(Summary):
    """What was aligned.

    examples: rows of the alignment, one for each row of the index.
    aligned, no_steps: rows with a step, and without.
    spans: ranges of all rows.
    rules: rows by the name of their rule.
    explicit, regex, heuristic: rows by the kind of their rule.
    verified, wrong: rows by the verdict of an audit.
    low_confidence: rows with a confidence below 0.9.
    mean_confidence: of all rows; 0 where there are none.
    labels: ranges by the first word of their label.
    confidence: rows by confidence, in tenths: "0.8" for 0.8 up to 0.9; "0.9" has 1.0, too.
    """

    examples: int
    aligned: int
    no_steps: int
    spans: int
    explicit: int
    regex: int
    heuristic: int
    verified: int
    wrong: int
    low_confidence: int
    mean_confidence: float
    rules: Mapping[str, int]
    labels: Mapping[str, int]
    confidence: Mapping[str, int]


def align(
    jsonl: Path,
    shards: Path,
    out: Path,
    config: AlignConfig,
    parts: PartStore | None = None,
    *,
    audits: Path | None = None,
    progress: Progress = SILENT,
) -> AlignSummary:
    """Write `<corpus>/<split>.align.jsonl`, a row for each row of the index.

    jsonl: the normalised file `<corpus>/<split>.jsonl`.
    shards: the folder of the token shards, which has the index of the split.
    out: folder to write, which must not exist.
    config: of the alignment.
    parts: store of finished parts, where a killed build continues; default a folder in `out`
        that is removed.
    audits: file of audits; None or a file that is not there: no audits.
    progress: gets the stage "align", in bytes of normalised records.

    Memory does not grow with the records. Raises BadInput for another vocabulary or none, an
    index of other texts, and a broken line of audits.
    """
    corpus, split = jsonl.parent.name, jsonl.stem
    if not is_key(f"{corpus}__{split}"):
        raise BadInput(jsonl, "is no <corpus>/<split>.jsonl: give a published normalised file")
    index = shards / names.split_index(corpus, split)
    for file, asset in ((jsonl, "reasoning/normalized"), (index, "reasoning/gpt2_shards")):
        if not file.is_file():
            raise BadInput(file, f"is not there: build {asset}")
    read_verified(GPT2, config.vocabulary)  # before anything is written
    found = verdicts.latest(audits)
    path = out / names.alignment(corpus, split)
    path.parent.mkdir(parents=True)
    tally = _Tally()
    with ExitStack() as stack:
        written = stack.enter_context(HashedFile(path))
        stage = stack.enter_context(progress.stage("align", "bytes", jsonl.stat().st_size))
        tasks = _tasks(jsonl, index, config, found)
        # Parts of the engine that a user has turned off are not used again.
        prefix = "rows" if config.engine == AUTO else f"{config.engine}_rows"
        sizes: deque[int] = deque()

        def named_tasks() -> Iterator[tuple[str, Task]]:
            for number, task in enumerate(tasks):
                sizes.append(task.end - task.start)
                yield f"{prefix}_{number:06d}", task

        named = named_tasks()
        made = run_parts(align_part.make_part, named, parts, config.workers, scratch=out)
        for _, part, summary in stack.enter_context(closing(made)):
            _append(part, written)
            tally.add(summary)
            stage.advance(sizes.popleft())
    note = FileNote(rows=tally.counts["rows"], sha256=written.sha256, bytes=written.bytes)
    return tally.summary({path.relative_to(out).as_posix(): note})


def _append(part: Path, file: HashedFile) -> None:
    with part.open("rb", buffering=0) as source:
        while data := source.read(_READ_BYTES):
            file.write(data)


def _tasks(
    jsonl: Path, index: Path, config: AlignConfig, found: Mapping[verdicts.Key, str]
) -> Iterator[Task]:
    """Yield tasks of whole records with at least `_PART_BYTES`, but for the last."""
    steps = config.steps if isinstance(config, CorpusAlignConfig) else ""
    marks: dict[str, str] = json.loads(steps or "{}")
    with jsonl.open("rb") as records, index.open("rb") as rows:
        record = start = index_start = 0
        while True:
            first, size = record, 0
            for line in iter(records.readline, b""):
                size += len(line)
                record += not line.isspace()
                if size >= _PART_BYTES:
                    break
            last = size < _PART_BYTES
            index_end = _index_end(rows, index, None if last else record)
            yield Task(
                jsonl=jsonl,
                index=index,
                corpus=jsonl.parent.name,
                split=jsonl.stem,
                start=start,
                end=start + size,
                first_record=first,
                index_start=index_start,
                index_end=index_end,
                verdicts={
                    key: verdict
                    for key, verdict in found.items()
                    if first <= _number(key[0]) < record
                },
                vocabulary=config.vocabulary,
                engine=config.engine,
                marks=marks,
            )
            if last:
                return
            start, index_start = start + size, index_end


def _number(example_id: str) -> int:
    """Number of a record from the id of its example; -1 if it has none."""
    digits = example_id.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else -1


def _index_end(rows: BinaryIO, index: Path, record: int | None) -> int:
    """Where the row of the first record from `record` on begins; None for the end of the file.

    rows: the index, open; it is left there.
    """
    if record is None:
        return rows.seek(0, 2)
    while True:
        place = rows.tell()
        if not (line := rows.readline()):
            return place
        if (match := _RECORD.match(line)) is None:
            raise BadInput(index, "a row does not begin with example_id: build the shards again")
        if int(match[1]) >= record:
            return rows.seek(place)


@dataclass
class _Tally:
    """The counts of the parts so far."""

    counts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    bins: Counter[str] = field(default_factory=Counter)

    def add(self, summary: dict[str, Any]) -> None:
        """Add the summary of a part, as `align_part.make_part` returns it."""
        for name in ("rules", "labels", "bins"):
            getattr(self, name).update(summary[name])
        self.counts.update({name: n for name, n in summary.items() if isinstance(n, int | float)})

    def summary(self, files: Mapping[str, FileNote]) -> AlignSummary:
        rows, no_steps = self.counts["rows"], self.rules[NO_STEPS]
        kinds = Counter[str]()
        for rule, number in self.rules.items():
            kinds[rule.partition(":")[0]] += number
        mean = self.counts["confidence"] / rows if rows else 0.0
        return AlignSummary(
            files=files,
            examples=rows,
            aligned=rows - no_steps,
            no_steps=no_steps,
            spans=self.counts["spans"],
            explicit=kinds["explicit"],
            regex=kinds["regex"],
            heuristic=kinds["heuristic"],
            verified=self.counts["verified"],
            wrong=self.counts["wrong"],
            low_confidence=self.counts["low_confidence"],
            mean_confidence=round(mean, 9),
            rules={rule: self.rules[rule] for rule in RULES if self.rules[rule]},
            labels=dict(sorted(self.labels.items())),
            confidence={f"{k / BINS}": self.bins[str(k)] for k in range(BINS)},
        )
