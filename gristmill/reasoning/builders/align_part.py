"""What a worker does: some records of a normalised file become rows of an alignment.

See also `align.py`: which records a part has, and the parts to the file.
Source: `docs/formats/reasoning.md#alignment`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import HashedFile
from gristmill.reasoning.format import align, audits, names
from gristmill.reasoning.render.projection import Projection
from gristmill.reasoning.render.steps import NO_STEPS, Steps, steps_of
from gristmill.reasoning.render.text import Rendered, rendered
from gristmill.run.parts import SHA256
from gristmill.vocabularies.encode import encoder
from gristmill.vocabularies.pinned import GPT2

BATCH_CHARACTERS: Final = 1 << 20
"""Texts of about so many characters are encoded together."""
BINS: Final = 10
_AGAIN: Final = "build reasoning/gpt2_shards again"


@dataclass(frozen=True)
class Task:
    """One part to make.

    jsonl, index: the normalised file of a split, and the index of its shards.
    corpus, split: which split it is.
    start, end: bytes of the records in `jsonl`.
    first_record: number of records before them.
    index_start, index_end: bytes of their rows in `index`.
    verdicts: of audits of these records, by example_id and text_sha256.
    vocabulary: file of GPT-2's ranks.
    engine: one of `engine.ENGINES`.
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
    verdicts: Mapping[audits.Key, str]
    vocabulary: Path
    engine: str
    marks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Example:
    """A record that has tokens: its row of the index, its text and its steps."""

    row: Mapping[str, Any]
    rendered: Rendered
    steps: Steps


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a task: rows of the alignment.

    task: the records.
    path: file to write.

    Returns its summary: `rows`, `spans`, `verified`, `wrong`, `low_confidence`, `confidence`
    (a sum), and the counters `rules`, `bins`, `labels`; with the part's hash.
    """
    counts: dict[str, Any] = dict.fromkeys(
        ("rows", "spans", "verified", "wrong", "low_confidence", "confidence"), 0
    )
    counters: dict[str, Counter[str]] = {name: Counter() for name in ("rules", "bins", "labels")}
    with HashedFile(path) as file:
        for batch in _batches(task):
            rows = list(_rows(batch, task))
            file.write(b"".join(map(align.line, rows)))
            _count(rows, counts, counters)
    return counts | {name: dict(each) for name, each in counters.items()} | {SHA256: file.sha256}


def _count(
    rows: list[align.AlignRow], counts: dict[str, Any], counters: dict[str, Counter[str]]
) -> None:
    for row in rows:
        counts["rows"] += 1
        counts["spans"] += len(row.step_labels)
        counts["verified"] += align.is_verified(row.notes)
        counts["wrong"] += row.notes.endswith(align.WRONG)
        counts["low_confidence"] += row.confidence < align.UNSURE
        counts["confidence"] += row.confidence
        counters["rules"][row.rule] += 1
        counters["bins"][str(min(BINS - 1, int(row.confidence * BINS)))] += 1
        counters["labels"].update(label.partition(" ")[0] for label in row.step_labels)


def _batches(task: Task) -> Iterator[list[_Example]]:
    """Yield the examples of a task, some of them together."""
    batch: list[_Example] = []
    characters = 0
    wanted = _index_rows(task)
    row = next(wanted, None)
    for record, line in enumerate(_lines(task.jsonl, task.start, task.end), task.first_record):
        example_id = names.example_id(task.corpus, task.split, record)
        if row is None or row["example_id"] != example_id:
            continue
        value = json.loads(line)
        text = rendered(value)
        _check(task, row, text.text)
        batch.append(_Example(row, text, steps_of(value, text, task.corpus, task.marks)))
        characters += len(text.text)
        if characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
        row = next(wanted, None)
    if row is not None:
        raise BadInput(
            task.index,
            f"{row['example_id']} is no record of {task.jsonl}, or not in order: {_AGAIN}",
        )
    if batch:
        yield batch


def _index_rows(task: Task) -> Iterator[dict[str, Any]]:
    for line in _lines(task.index, task.index_start, task.index_end):
        yield json.loads(line)


def _lines(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Yield the lines between two places in a file that are not blank."""
    with path.open("rb") as file:
        file.seek(start)
        while start < end:
            line = file.readline()
            if not line:
                raise BadInput(path, "became shorter during the build: build it again")
            start += len(line)
            if not line.isspace():
                yield line


def _check(task: Task, row: Mapping[str, Any], text: str) -> None:
    """Raise BadInput where the index is of another text."""
    if hashlib.sha256(text.encode()).hexdigest() != row["text_sha256"]:
        raise BadInput(
            task.index, f"{row['example_id']} has another text_sha256 than {task.jsonl}: {_AGAIN}"
        )


def _rows(batch: list[_Example], task: Task) -> Iterator[align.AlignRow]:
    """Yield the rows of some examples."""
    texts = [example.rendered.text for example in batch]
    encoded = encoder(GPT2, task.vocabulary, task.engine).encode(texts)
    counts = [ids.nbytes // 4 for ids in encoded.ids]
    for example, count in zip(batch, counts, strict=True):
        if count != example.row["num_tokens"]:
            raise BadInput(
                task.index,
                f"{example.row['example_id']} has num_tokens {example.row['num_tokens']}, but its "
                f"text has {count} tokens: {_AGAIN}",
            )
    tokens = _projected(batch, texts, b"".join(encoded.ids), counts, task.vocabulary)
    place = 0
    for example in batch:
        row, steps = example.row, example.steps
        verdict = task.verdicts.get((row["example_id"], row["text_sha256"]))
        # An audit of steps: where there are none, there was nothing to look at.
        rule = steps.rule if steps.rule == NO_STEPS else align.notes(steps.rule, verdict)
        yield align.AlignRow(
            example_id=row["example_id"],
            sequence_index=row["sequence_index"],
            shard_path=row["shard_path"],
            text_offset_ranges=[list(pair) for pair in steps.ranges],
            token_offset_ranges=tokens[place : place + len(steps.ranges)],
            step_labels=steps.labels,
            confidence=steps.confidence,
            notes=rule,
        )
        place += len(steps.ranges)


def _projected(
    batch: list[_Example], texts: list[str], ids: bytes, counts: list[int], vocabulary: Path
) -> list[list[int]]:
    """The token ranges of the steps of all examples, one after the other."""
    spans = np.array([pair for example in batch for pair in example.steps.ranges], np.int64)
    spans = spans.reshape(-1, 2)
    where = np.repeat(np.arange(len(batch)), [len(example.steps.ranges) for example in batch])
    try:
        projection = Projection(texts, np.frombuffer(ids, np.int32), counts, vocabulary)
    except GristmillError as error:
        first = batch[0].row["example_id"]
        raise GristmillError(f"examples from {first} on: {error}") from error
    ranges: list[list[int]] = projection.tokens(where, spans[:, 0], spans[:, 1]).tolist()
    return ranges
