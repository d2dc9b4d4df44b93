"""Rows of an alignment with what they are about, and the weekly sample for audits."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import corpus_and_split, is_key
from gristmill.corpora.records import parse
from gristmill.printable import printable
from gristmill.reasoning.format import align, audits, index, names
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.render.steps import NO_STEPS
from gristmill.reasoning.render.text import Rendered, rendered

_STALE = "build reasoning/alignment again"


@dataclass(frozen=True)
class Example:
    """One row of an alignment."""

    row: AlignRow
    rendered: Rendered
    record: Mapping[str, Any]
    index: Mapping[str, Any]

    @property
    def text_sha256(self) -> str:
        """Hash of the text, as audits have it."""
        return str(self.index["text_sha256"])


def examples(
    normalized: Path, tokenized: Path, alignment: Path, corpus: str, split: str
) -> Iterator[Example]:
    """Yield the rows of the alignment of a split, with their texts.

    Memory does not grow with the files. Raises BadInput where a file is not there, or where the
    three do not have the same examples and texts in the same order.
    """
    path = alignment / names.alignment(corpus, split)
    index_path = tokenized / names.split_index(corpus, split)
    records = _records(normalized / names.normalized(corpus, split))
    rows = align.rows(path)
    for line, file, number in _lines(index_path, "reasoning/gpt2_shards"):
        entry = index.parsed(line, file, number)
        row = next(rows, None)
        if row is None:
            raise BadInput(path, f"has no row {entry['example_id']}: {_STALE}")
        if row.example_id != entry["example_id"]:
            rule = f"has {row.example_id} where the index has {entry['example_id']}: {_STALE}"
            raise BadInput(path, rule)
        record = _record(records, index_path, entry["example_id"], (corpus, split))
        yield _example(row, record, entry, index_path)
    if (row := next(rows, None)) is not None:
        raise BadInput(path, f"{row.example_id} is not in the index: {_STALE}")


def place_of(example_id: str) -> tuple[str, str, int]:
    """Corpus, split and number of the record of an example.

    Raises GristmillError for anything else.
    """
    corpus, split, digits = ["", "", *example_id.rsplit("_", 2)][-3:]
    if is_key(f"{corpus}__{split}") and len(digits) < 20 and digits.isascii() and digits.isdigit():
        number = int(digits)
        if example_id == names.example_id(corpus, split, number):
            return corpus, split, number
    raise GristmillError(f"{printable(example_id)}: is no id of an example, as gsm8k_test_000012")


def example(normalized: Path, tokenized: Path, alignment: Path, example_id: str) -> Example:
    """One row of an alignment, with its text.

    Raises GristmillError for an unknown id, BadInput where a file is not there, has no such
    example, or is of another text.
    """
    corpus, split, number = place_of(example_id)
    path = alignment / names.alignment(corpus, split)
    row = align.parsed(*_line_of(path, "reasoning/alignment", example_id))
    index_path = tokenized / names.split_index(corpus, split)
    line, file, place = _line_of(index_path, "reasoning/gpt2_shards", example_id)
    entry = index.parsed(line, file, place)
    source = normalized / names.normalized(corpus, split)
    lines = (each for each in _lines(source, "reasoning/normalized") if not each[0].isspace())
    found = next(islice(lines, number, None), None)
    if found is None:
        raise BadInput(source, f"has no record {number}")
    record = parse(*found)
    return _example(row, record, entry, index_path)


def _line_of(path: Path, asset: str, example_id: str) -> tuple[bytes, Path, int]:
    """The line of an example: its bytes, its file, its number from 1."""
    start = f'{{"example_id": "{example_id}"'.encode()
    for found in _lines(path, asset):
        if found[0].startswith(start):
            return found
    raise BadInput(path, f"has no row {example_id}")


def _example(
    row: AlignRow, record: Mapping[str, Any], entry: Mapping[str, Any], index_path: Path
) -> Example:
    text = rendered(record)
    if hashlib.sha256(text.text.encode()).hexdigest() != entry["text_sha256"]:
        rule = f"{row.example_id} is of another text: build the shards again"
        raise BadInput(index_path, rule)
    return Example(row, text, record, entry)


def _record(
    records: Iterator[tuple[int, dict[str, Any]]], index: Path, wanted: str, split: tuple[str, str]
) -> dict[str, Any]:
    """The record with an id; those before it are passed over."""
    for number, record in records:
        if names.example_id(*split, number) == wanted:
            return record
    raise BadInput(index, f"{wanted} is no record, or not in order: build the shards again")


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    asset = "reasoning/normalized"
    lines = (each for each in _lines(path, asset) if not each[0].isspace())
    for number, found in enumerate(lines):
        yield number, parse(*found)


def _lines(path: Path, asset: str) -> Iterator[tuple[bytes, Path, int]]:
    """Yield the lines of a file, with the file and their numbers from 1."""
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise BadInput(path, f"is not there: build {asset}") from error
    with file:
        for number, line in enumerate(file, 1):
            yield line, path, number


class Drawn(NamedTuple):
    """One example of a sample."""

    row: AlignRow
    text_sha256: str


def week_of(day: date) -> str:
    """The ISO week of a day, as `2026-W47`."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


def draw(
    tokenized: Path, alignment: Path, audited: Path, corpus: str, week: str, count: int
) -> list[Drawn]:
    """Draw the sample of a corpus for one week, over all splits that are aligned.

    Examples with less confidence come first; among equals, the hash of week and id decides.
    Those without steps, and those that have an audit of the same text, are left out. Memory does
    not grow with the examples. Raises BadInput where an alignment is not that of its index.
    """
    found = (
        (drawn.row.confidence, _order(week, drawn.row.example_id), drawn)
        for key in splits_in(alignment, "{split}.align.jsonl")
        if (split := key.split("__")[1]) and corpus_and_split(key)[0].name == corpus
        for drawn in _open(tokenized, alignment, audited, corpus, split)
    )
    return [drawn for _, _, drawn in heapq.nsmallest(count, found, key=lambda each: each[:2])]


def _order(week: str, example_id: str) -> bytes:
    return hashlib.sha256(f"{week} {example_id}".encode()).digest()


def _open(
    tokenized: Path, alignment: Path, audited: Path, corpus: str, split: str
) -> Iterator[Drawn]:
    """Yield the examples of a split that have steps and no audit."""
    path = alignment / names.alignment(corpus, split)
    if not path.exists():
        return
    verdicts = audits.latest(audited / Path(names.audits(f"{corpus}__{split}")).name)
    entries = index.objects(tokenized / names.split_index(corpus, split))
    for row in align.rows(path):
        entry = next(entries, None)
        if entry is None or entry["example_id"] != row.example_id:
            rule = f"{row.example_id} is not in the index at this place"
            raise BadInput(path, f"{rule}: build reasoning/alignment again")
        key = (row.example_id, entry["text_sha256"])
        if row.rule != NO_STEPS and key not in verdicts:
            yield Drawn(row, entry["text_sha256"])
