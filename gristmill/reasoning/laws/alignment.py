"""Laws of alignments, with and without inputs. Source: `docs/formats/reasoning.md#alignment`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError, Violation
from gristmill.corpora.corpus import corpus_and_split
from gristmill.laws import Few
from gristmill.reasoning.format import align, names
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.read.alignment import Example, examples
from gristmill.reasoning.render.steps import NO_STEPS, RULES, is_label

_OF_ROWS: Final = "{more:,} more of {count:,} rows"
_STATES: Final = (align.PENDING, align.VERIFIED, align.WRONG)
_NOTES: Final = frozenset(
    {NO_STEPS, *(f"{rule}; {state}" for rule in RULES[:-1] for state in _STATES)}
)


def alignment_laws(
    folder: Path, partition: str | None = None, labels: Collection[str] = ()
) -> Iterator[Violation]:
    """Yield what the rows of alignments break, without other artifacts.

    labels: those that the file of the corpus names; default none.

    The laws: `readable` (the form of a row), `order` (ids ascend, each once), `lengths` (three
    lists of equal length), `ranges` (text ranges ascend without overlap; token ranges ascend),
    `labels`, `confidence` (from 0 to 1; below 0.9 where the rule is a heuristic), `notes`. Of each
    law the first 20 offenders are given, and their number. Memory does not grow with the rows.
    """
    for corpus, split in _splits(folder, partition):
        where = names.alignment(corpus, split)
        found = Few(where, _OF_ROWS)
        record = -1
        try:
            for number, row in enumerate(align.rows(folder / where), 1):
                place = f"{where}:{number}"
                record = _order(row, corpus, split, record, place, found)
                _row(row, place, found, labels)
        except GristmillError as error:
            found.add("readable", where, str(error))
        yield from found.added()


def index_laws(
    folder: Path, normalized: Path, tokenized: Path, partition: str | None = None
) -> Iterator[Violation]:
    """Yield what alignments break of the index of their shards and of the normalised records.

    The laws: `one row each` (rows, index and records are of the same examples in the same order,
    and of the same texts), `index` (shard and sequence are those of the index), `bounds` (ranges
    end within text and tokens). Of each law the first 20 offenders are given, and their number.
    Memory does not grow with the rows.
    """
    for corpus, split in _splits(folder, partition):
        where = names.alignment(corpus, split)
        found = Few(where, _OF_ROWS)
        try:
            each = examples(normalized, tokenized, folder, corpus, split)
            for number, example in enumerate(each, 1):
                _of_index(example, f"{where}:{number}", found)
        except GristmillError as error:
            found.add("one row each", where, str(error))
        yield from found.added()


def _splits(folder: Path, partition: str | None) -> Iterator[tuple[str, str]]:
    for key in splits_in(folder, "{split}.align.jsonl") if partition is None else (partition,):
        corpus, split = corpus_and_split(key)
        yield corpus.name, split


def _order(row: AlignRow, corpus: str, split: str, before: int, place: str, found: Few) -> int:
    """Check the id of a row; return its record. before: record of the row before, or -1."""
    digits = row.example_id.rpartition("_")[2]
    record = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else -1
    if record < 0 or row.example_id != names.example_id(corpus, split, record):
        found.add("order", place, f"{row.example_id!r} is no id of {corpus} {split}")
        return before
    if record <= before:
        found.add("order", place, f"{row.example_id} comes after record {before}")
    return record


def _row(row: AlignRow, place: str, found: Few, labels: Collection[str]) -> None:
    """Check a row without looking at anything else."""
    texts, tokens = row.text_offset_ranges, row.token_offset_ranges
    sizes = (len(texts), len(tokens), len(row.step_labels))
    if len(set(sizes)) > 1:
        found.add("lengths", place, f"{sizes[0]} text ranges, {sizes[1]} token ranges, "
                  f"{sizes[2]} labels")  # fmt: skip
    if not _ascend(texts, 0):
        found.add("ranges", place, f"text ranges {texts} overlap or do not ascend")
    # Two steps can share the token that has bytes of both.
    if not _ascend(tokens, 1):
        found.add("ranges", place, f"token ranges {tokens} overlap or do not ascend")
    if unknown := [
        label for label in row.step_labels if not is_label(label) and label not in labels
    ]:
        found.add("labels", place, f"unknown: {unknown!r}")
    if not 0.0 <= row.confidence <= 1.0:
        found.add("confidence", place, f"{row.confidence} is not from 0 to 1")
    elif row.rule.startswith(align.HEURISTIC) and row.confidence >= align.UNSURE:
        found.add("confidence", place, f"{row.confidence} for {row.rule}")
    if row.notes not in _NOTES:
        found.add("notes", place, f"unknown: {row.notes!r}")
    nothing = (row.notes == NO_STEPS, not texts, row.confidence == 0.0)
    if any(nothing) and not all(nothing):
        found.add("notes", place, f"{len(texts)} steps, confidence {row.confidence}: {row.notes}")


def _ascend(ranges: list[list[int]], shared: int) -> bool:
    """Whether ranges are not empty, begin at 0 or later and ascend."""
    if any(start < 0 or start >= end for start, end in ranges):
        return False
    return all(a[1] <= b[0] + shared and a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(ranges))


def _of_index(example: Example, place: str, found: Few) -> None:
    """Check a row with its line in the index and its text."""
    row = example.row
    for key, value in (("sequence_index", row.sequence_index), ("shard_path", row.shard_path)):
        if value != example.index[key]:
            rule = f"{key} is {value!r}, the index has {example.index[key]!r}"
            found.add("index", place, f"{row.example_id}: {rule}")
    for ranges, end, what in (
        (row.text_offset_ranges, len(example.rendered.text), "characters"),
        (row.token_offset_ranges, example.index["num_tokens"], "tokens"),
    ):
        if bad := [pair for pair in ranges if not 0 <= pair[0] < pair[1] <= end]:
            rule = f"ranges {bad} are not within {end} {what}"
            found.add("bounds", place, f"{row.example_id}: {rule}")
            return
