"""The builder of the alignment of a split. Source: `docs/formats/reasoning.md#alignment`."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import orjson

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.corpora.corpus import is_key
from gristmill.corpora.split_file import is_there, opened, size
from gristmill.hashing import HashedFile
from gristmill.reasoning.config import AlignConfig, CorpusAlignConfig
from gristmill.reasoning.format import align as form
from gristmill.reasoning.format import names
from gristmill.reasoning.format.index import Numbers
from gristmill.reasoning.read.alignment import Key, latest
from gristmill.reasoning.render.regions import Projection
from gristmill.reasoning.render.steps import NO_STEPS, RULES, WORKED, Steps, steps_of
from gristmill.reasoning.render.text import rendered
from gristmill.run.parts import SHA256, PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import GPT2
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned

BATCH_BYTES: Final = 1 << 20
"""The texts of records of about so many bytes are encoded together."""
BINS: Final = 10
_NO_COT: Final = b'"cot": null, "source_dataset": "'
"""In the line of a record without a chain of thought; texts have their quotes escaped."""
_RECORD: Final = re.compile(rb'\{"example_id": "[a-z0-9_]+_([0-9]{6,})"')
_OF_INDEX: Final = re.compile(
    rb'^(\{"example_id": "[^"\\]+"), ("shard_path": "[^"\\]+"), ("sequence_index": [0-9]+), '
    rb'"token_start": [^\n]*$',
    re.MULTILINE,
)
"""A line of an index, as it is written."""
_COUNTERS: Final = ("rules", "bins", "labels")
_NO_STEPS: Final = Steps([], [], 0.0, NO_STEPS)
_AGAIN: Final = "build reasoning/gpt2_shards again"


@dataclass(frozen=True)
class Task:
    """One part to make.

    jsonl, index: the normalised file of a split, and the index of its shards.
    start, end: bytes of the records in `jsonl`. first_record: number of records before.
    index_start, index_end: bytes of their rows in `index`.
    marks: as for `steps_of`; default none.
    """

    jsonl: Path
    index: Path
    corpus: str
    split: str
    start: int
    end: int
    first_record: int
    index_start: int
    index_end: int
    verdicts: Mapping[Key, str]
    tokenizer: Tokenizer
    engine: str
    marks: Mapping[str, str] = field(default_factory=dict)


class _Example(NamedTuple):
    """A record that has tokens: its row of the index, its steps, and its text where it has some."""

    row: Mapping[str, Any]
    steps: Steps
    text: str = ""


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a task: rows of the alignment.

    Returns its summary: `rows`, `spans`, `verified`, `wrong`, `low_confidence`, `confidence` (a
    sum), and the counters `rules`, `bins` and `labels`; with the part's hash.
    """
    counts: dict[str, Any] = Counter()
    counters = {name: Counter[str]() for name in _COUNTERS}
    with HashedFile(path) as file:
        if (lines := _without_steps(task)) is not None:
            file.write(lines)
            _count([], lines.count(b"\n"), counts, counters)
        for batch in _batches(task) if lines is None else ():
            rows = list(_rows([each for each in batch if each.steps.ranges], task))
            found = map(form.line, rows)
            file.write(
                b"".join(
                    next(found) if each.steps.ranges else form.no_steps(each.row) for each in batch
                )
            )
            _count(rows, len(batch) - len(rows), counts, counters)
    return {**counts, **{name: dict(each) for name, each in counters.items()}, SHA256: file.sha256}


def _without_steps(task: Task) -> bytes | None:
    """The lines of a part of whose records none has a chain of thought; None of another one.

    They are made of the bytes of the index. What is wrong with these, the other way says.
    """
    records = b"".join(_lines(task.jsonl, task.start, task.end))
    if task.corpus == WORKED or records.count(_NO_COT) < records.count(b"\n"):
        return None
    index = b"".join(_lines(task.index, task.index_start, task.index_end))
    lines, count = _OF_INDEX.subn(form.OF_INDEX, index)
    found = np.array(_RECORD.findall(index), "S").astype(np.int64)
    stop = task.first_record + records.count(b"\n")
    numbers = Numbers(task.jsonl).between(task.first_record, stop)
    is_ascending = bool((np.diff(found) > 0).all()) and bool(np.isin(found, numbers).all())
    return lines if is_ascending and count == len(found) == index.count(b"\n") else None


def _count(
    rows: list[form.AlignRow],
    others: int,
    counts: dict[str, Any],
    counters: Mapping[str, Counter[str]],
) -> None:
    """Count rows with steps, and others, which have none."""
    if others:
        counts["low_confidence"] += others
        counters["rules"][NO_STEPS] += others
        counters["bins"]["0"] += others
    counts["rows"] += others + len(rows)
    for row in rows:
        counts["spans"] += len(row.step_labels)
        counts["verified"] += row.notes.endswith(form.VERIFIED)
        counts["wrong"] += row.notes.endswith(form.WRONG)
        counts["low_confidence"] += row.confidence < form.UNSURE
        counts["confidence"] += row.confidence
        counters["rules"][row.rule] += 1
        counters["bins"][str(min(BINS - 1, int(row.confidence * BINS)))] += 1
        counters["labels"].update(label.partition(" ")[0] for label in row.step_labels)


def _batches(task: Task) -> Iterator[list[_Example]]:
    batch: list[_Example] = []
    size = 0
    wanted = map(orjson.loads, _lines(task.index, task.index_start, task.index_end))
    row = next(wanted, None)
    numbers = Numbers(task.jsonl)
    for place, line in enumerate(_lines(task.jsonl, task.start, task.end), task.first_record):
        example_id = names.example_id(task.corpus, task.split, numbers.of(place))
        if row is None or row["example_id"] != example_id:
            continue
        batch.append(_example(task, line, row))
        size += len(line)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
        row = next(wanted, None)
    if row is not None:
        raise BadInput(
            task.index,
            f"{row['example_id']} is no record of {task.jsonl}, or not in order: {_AGAIN}",
        )
    if batch:
        yield batch


def _example(task: Task, line: bytes, row: Mapping[str, Any]) -> _Example:
    """The example of a record's line. Raises BadInput where its text is not that of its row."""
    # It is near the end of a line.
    if line.rfind(_NO_COT) >= 0 and task.corpus != WORKED:
        return _Example(row, _NO_STEPS)
    value = orjson.loads(line)
    text = rendered(value)
    if hashlib.sha256(text.text.encode()).hexdigest() != row["text_sha256"]:
        raise BadInput(
            task.index, f"{row['example_id']} has another text_sha256 than {task.jsonl}: {_AGAIN}"
        )
    return _Example(row, steps_of(value, text, task.corpus, task.marks), text.text)


def _lines(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Yield the lines between two places in a file that are not blank."""
    with opened(path) as file:
        file.seek(start)
        for line in file if start < end else ():
            start += len(line)
            if not line.isspace():
                yield line
            if start >= end:
                return
    if start < end:
        raise BadInput(path, "became shorter during the build: build it again")


def _rows(batch: list[_Example], task: Task) -> Iterator[form.AlignRow]:
    """Yield the rows of examples that have steps."""
    tokens = iter(_projected(batch, task) if batch else ())
    for row, steps, _ in batch:
        verdict = task.verdicts.get((row["example_id"], row["text_sha256"]))
        yield form.AlignRow(
            example_id=row["example_id"],
            sequence_index=row["sequence_index"],
            shard_path=row["shard_path"],
            text_offset_ranges=[list(pair) for pair in steps.ranges],
            token_offset_ranges=list(islice(tokens, len(steps.ranges))),
            step_labels=steps.labels,
            confidence=steps.confidence,
            notes=form.notes(steps.rule, verdict),
        )


def _projected(batch: list[_Example], task: Task) -> list[list[int]]:
    """The token ranges of the steps of all examples, one after the other; each has some."""
    texts = [example.text for example in batch]
    encoded = task.tokenizer.encode(texts, task.engine)
    counts = [ids.nbytes // 4 for ids in encoded.ids]
    for example, count in zip(batch, counts, strict=True):
        if count != example.row["num_tokens"]:
            raise BadInput(
                task.index,
                f"{example.row['example_id']} has num_tokens {example.row['num_tokens']}, but its "
                f"text has {count} tokens: {_AGAIN}",
            )
    spans = np.array([pair for example in batch for pair in example.steps.ranges], np.int64)
    where = np.repeat(np.arange(len(batch)), [len(example.steps.ranges) for example in batch])
    try:
        lengths = task.tokenizer.token_lengths
        ids = np.frombuffer(b"".join(encoded.ids), np.int32)
        projection = Projection(texts, ids, counts, lengths)
    except GristmillError as error:
        first = batch[0].row["example_id"]
        raise GristmillError(f"examples from {first} on: {error}") from error
    ranges: list[list[int]] = projection.tokens(where, spans[:, 0], spans[:, 1]).tolist()
    return ranges


_PART_BYTES: Final = 8 << 20
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class AlignSummary(Summary):
    """What was aligned."""

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
    tokenizer: Tokenizer | None = None,
) -> AlignSummary:
    """Write `<corpus>/<split>.align.jsonl`, a row for each row of the index.

    jsonl: the normalised file `<corpus>/<split>.jsonl`.
    shards: the folder of the token shards, which has the index of the split.
    out: folder to write, without this file.
    config: of the alignment.
    parts: store of finished parts, where a killed build continues; default a folder in `out`
        that is removed.
    audits: file of audits; None or a file that is not there: no audits.
    progress: gets the stage "align", in bytes of normalised records.
    tokenizer: of the shards, with offsets; default None, GPT-2's at `config.vocabulary`.

    Memory does not grow with the records. Raises BadInput for another vocabulary or none, an
    index of other texts, and a broken line of audits.
    """
    corpus, split = jsonl.parent.name, jsonl.stem
    if not is_key(f"{corpus}__{split}"):
        raise BadInput(jsonl, "is no <corpus>/<split>.jsonl: give a published normalised file")
    index = shards / names.split_index(corpus, split)
    for file, asset in ((jsonl, "reasoning/normalized"), (index, "reasoning/gpt2_shards")):
        if not is_there(file):
            raise BadInput(file, f"is not there: build {asset}")
    own = tokenizer or of_pinned(GPT2, config.vocabulary)
    own.read()  # before anything is written
    found = latest(audits)
    path = out / names.alignment(corpus, split)
    path.parent.mkdir(parents=True, exist_ok=True)
    tally = _Tally()
    with ExitStack() as stack:
        written = stack.enter_context(HashedFile(path))
        stage = stack.enter_context(progress.stage("align", "bytes", size(jsonl)))
        tasks = _tasks(jsonl, index, config, found, own)
        # Parts of the engine that a user has turned off are not used again.
        prefix = "rows" if config.engine == AUTO else f"{config.engine}_rows"
        sizes: deque[int] = deque()

        def named_tasks() -> Iterator[tuple[str, Task]]:
            for number, task in enumerate(tasks):
                sizes.append(task.end - task.start)
                yield f"{prefix}_{number:06d}", task

        named = named_tasks()
        made = run_parts(make_part, named, parts, config.workers, scratch=out)
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
    jsonl: Path,
    index: Path,
    config: AlignConfig,
    found: Mapping[Key, str],
    tokenizer: Tokenizer,
) -> Iterator[Task]:
    """Yield tasks of whole records with at least `_PART_BYTES`, but for the last."""
    steps = config.steps if isinstance(config, CorpusAlignConfig) else ""
    marks: dict[str, str] = json.loads(steps or "{}")
    numbers = Numbers(jsonl)
    with opened(jsonl) as records, opened(index) as rows:
        record = start = index_start = 0
        while True:
            first, size = record, 0
            for line in records:
                size += len(line)
                record += not line.isspace()
                if size >= _PART_BYTES:
                    break
            last = size < _PART_BYTES
            stop = numbers.of(record)
            index_end = _index_end(rows, index, None if last else stop)
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
                    if first <= _number(key[0]) < stop
                },
                tokenizer=tokenizer,
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
    """Where the row of the first number from `record` on begins; None for the end of the file."""
    if record is None:
        return rows.seek(0, 2)
    place = rows.tell()
    for line in iter(rows.readline, b""):
        if (match := _RECORD.match(line)) is None:
            raise BadInput(index, "a row does not begin with example_id: build the shards again")
        if int(match[1]) >= record:
            return rows.seek(place)
        place += len(line)
    return place


class _Tally:
    def __init__(self) -> None:
        self.counts, *each = (Counter[str]() for _ in ("counts", *_COUNTERS))
        self.rules, self.bins, self.labels = each

    def add(self, summary: dict[str, Any]) -> None:
        """Add the summary of a part, as `make_part` returns it."""
        for name in _COUNTERS:
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
