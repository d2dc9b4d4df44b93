"""Laws of alignments, reports, spans of arithmetic, audits of leaks and exported files.

The subject may be a folder of another program. Exported files are read by the rules of
the programs, `docs/consumers.md`.
Source: `docs/formats/reasoning.md#alignment`,
`docs/formats/reasoning.md#reports`, `docs/formats/reasoning.md#spans`,
`docs/formats/reasoning.md#leaks`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from gristmill.contract import GristmillError, Violation
from gristmill.corpora.corpus import corpus_and_split, is_key
from gristmill.families import Subject
from gristmill.laws import Few
from gristmill.reasoning.format import align, leaks, names, reports
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.read.alignment import pairs
from gristmill.reasoning.read.trace import parsed
from gristmill.reasoning.render.annotations import rows_of
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


def index_laws(folder: Path, tokenized: Path, partition: str | None = None) -> Iterator[Violation]:
    """Yield what alignments break of the index of their shards.

    The laws: `one row each` (rows and index are of the same examples in the same order), `index`
    (shard and sequence are those of the index), `bounds` (token ranges end within the example). Of
    each law the first 20 offenders are given, and their number. Memory does not grow with the rows.
    """
    for corpus, split in _splits(folder, partition):
        where = names.alignment(corpus, split)
        found = Few(where, _OF_ROWS)
        try:
            for number, (row, line) in enumerate(pairs(tokenized, folder, corpus, split), 1):
                place = f"{where}:{number}"
                for key in ("sequence_index", "shard_path"):
                    if (value := getattr(row, key)) != line[key]:
                        rule = f"{key} is {value!r}, the index has {line[key]!r}"
                        found.add("index", place, f"{row.example_id}: {rule}")
                if any(pair[1] > line["num_tokens"] for pair in row.token_offset_ranges):
                    rule = f"{row.token_offset_ranges} are not within {line['num_tokens']} tokens"
                    found.add("bounds", place, f"{row.example_id}: {rule}")
        except GristmillError as error:
            found.add("one row each", where, str(error))
        yield from found.added()


def _splits(folder: Path, partition: str | None) -> Iterator[tuple[str, str]]:
    for key in splits_in(folder, "{split}.align.jsonl") if partition is None else (partition,):
        corpus, split = corpus_and_split(key)
        yield corpus.name, split


def _order(row: AlignRow, corpus: str, split: str, before: int, place: str, found: Few) -> int:
    """Check the id of a row; return its record. before: record of the row before, or -1."""
    if row.example_id == names.example_id(corpus, split, before + 1):
        return before + 1
    example = parsed(row.example_id)
    if example is None or example[:2] != (corpus, split):
        found.add("order", place, f"{row.example_id!r} is no id of {corpus} {split}")
        return before
    record = example.record
    if record <= before:
        found.add("order", place, f"{row.example_id} comes after record {before}")
    return record


def _row(row: AlignRow, place: str, found: Few, labels: Collection[str]) -> None:
    """Check a row without looking at anything else."""
    texts, tokens = row.text_offset_ranges, row.token_offset_ranges
    if row.notes == NO_STEPS and not (texts or tokens or row.step_labels or row.confidence):
        return
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


def report_laws(folder: Path, partition: str | None = None) -> Iterator[Violation]:
    """Yield what reports break.

    The laws: `readable` (the form of a report), `date` (that of its name), `splits` (known ones),
    `totals` (sums over the splits, of all and of each token dataset), `ratios` (shares are those of
    the counts), `gate` (it passed where nothing drifted, and names the baseline of the drift). A
    gate that did not pass breaks no law: the check `drift` fails.
    """
    for date in [partition] if partition is not None else reports.dates(folder):
        path = reports.path(folder, date)
        try:
            report = reports.read(path)
        except GristmillError as error:
            yield Violation("readable", path.name, str(error))
            continue
        yield from _report(report, date, path.name)


def _report(report: Mapping[str, Any], date: str, where: str) -> Iterator[Violation]:
    if report["date"] != date:
        yield Violation("date", where, f"says {report['date']}")
    splits = report["splits"]
    if unknown := sorted(key for key in splits if not is_key(key)):
        yield Violation("splits", where, f"unknown: {', '.join(unknown)}")
    for key in reports.COUNTS:
        total = sum(split[key] for split in splits.values())
        if report["totals"].get(key) != total:
            yield Violation(
                "totals", where, f"{key} is {report['totals'].get(key)!r}, the splits have {total}"
            )
    for name, dataset in report.get(reports.DATASETS, {}).items():
        yield from _dataset(dataset, f"{where}: {name}")
    for name, split in reports.all_splits(report).items():
        yield from _split(split, f"{where}: {name}")
    if report["gate"].get("baseline") != report["drift"].get("baseline"):
        yield Violation("gate", where, "its baseline is not that of the drift")


def _dataset(dataset: Mapping[str, Any], where: str) -> Iterator[Violation]:
    """What the splits and totals of a token dataset break; a count that is null is not summed."""
    splits, totals = dataset["splits"], dataset["totals"]
    if unknown := sorted(key for key in splits if not is_key(key)):
        yield Violation("splits", where, f"unknown: {', '.join(unknown)}")
    for key in (*reports.DATASET_COUNTS, *reports.ALIGNED_COUNTS):
        counts = [split.get(key) for split in splits.values()]
        if counts and None not in counts and totals.get(key) != sum(counts):
            yield Violation(
                "totals", where, f"{key} is {totals.get(key)!r}, the splits have {sum(counts)}"
            )


def _split(split: Mapping[str, Any], where: str) -> Iterator[Violation]:
    examples = split["examples"]
    for key, part in (
        ("pct_with_cot", "with_cot"),
        ("avg_seq_len", "total_tokens"),
        ("alignment_coverage", "aligned"),
    ):
        expected = reports.ratio(split.get(part), examples, 100 if part == "with_cot" else 1)
        if (split[key] is None) != (expected is None) or (
            expected is not None and not math.isclose(split[key], expected, abs_tol=1e-6)
        ):
            yield Violation("ratios", where, f"{key} is {split[key]}, the counts give {expected}")
    for key in ("mean_confidence", "low_confidence_share"):
        if split.get(key) is not None and not 0 <= split[key] <= 1:
            yield Violation("ratios", where, f"{key} is {split[key]}, expected 0 to 1")


def span_laws(subject: Subject) -> Iterator[Violation]:
    """Yields what rows break by themselves.

    The laws: `readable` (the form of a row), `order` (annotations of a record count from 0),
    `parts` (all rows of a trace are in one part).
    """
    from gristmill.reasoning.builders.exports import CALIBRATION, EVALUATION  # imports pyarrow

    keys = [subject.partition] if subject.partition else splits_in(subject.folder, _FILE)
    if not keys:
        yield Violation("files", ".", "there is no <corpus>/<split>.spans.jsonl")
    for key in keys:
        where = names.spans(*key.split("__"))
        few, before = Few(where), ("", -1, "")
        try:
            for number, row in enumerate(rows_of(subject.folder / where), 1):
                for law, what in _broken(row, before, (CALIBRATION, EVALUATION)):
                    few.add(law, f"{where}:{number}", what)
                before = (row["example_id"], row["ann_idx"], row["part"])
        except GristmillError as error:
            few.add("readable", where, str(error))
        yield from few.added()


_FILE: Final = "{split}.spans.jsonl"


def _broken(
    row: dict[str, Any], before: tuple[str, int, str], parts: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the law that a row breaks, and how. before: id, number and part of the row before."""
    example, index, part = before
    is_same = row["example_id"] == example
    if row["example_id"] < example or row["ann_idx"] != (index + 1 if is_same else 0):
        yield "order", f"{row['example_id']} {row['ann_idx']} comes after {example} {index}"
    if row["part"] not in parts or (is_same and row["part"] != part):
        yield "parts", f"{row['part']!r} of {row['trace_id']}"


_FILES: Final = {
    "llm.c": "tokens_*_*.bin",
    "litdata": "*/index.json",
    "nanochat": "shard_*.parquet",
}
"""The files of each format that its program looks for."""


def file_laws(subject: Subject) -> Iterator[Violation]:
    """Yields the formats without the files that their programs look for: `files`."""
    there = [name for name in _FILES if (subject.folder / name).is_dir()]
    asked = subject.config.get("formats", there)
    for name in asked or ["."]:
        pattern = _FILES.get(name, "")
        if not pattern or not any((subject.folder / name).glob(pattern)):
            yield Violation("files", name, f"there is no {pattern or ' or '.join(_FILES)}")


def leak_laws(subject: Subject) -> Iterator[Violation]:
    """Yields what an audit of leaks breaks.

    The laws: `readable` (the form of both files), `order` (those with other names or numbers behind
    the others, of each kind the worst first), `counts` (the summary counts what is listed, and of
    no text more rows than it has).
    """
    few, before, total = Few(leaks.ROWS), (False, -1.0), 0
    try:
        summary = json.loads((subject.folder / leaks.SUMMARY).read_bytes())
        with (subject.folder / leaks.ROWS).open("rb") as file:
            for total, row in enumerate(map(json.loads, file), 1):
                now = row["changed"], -row["share"]
                if now < before or now[1] >= 0:
                    few.add("order", f"{leaks.ROWS}:{total}", f"{now} comes after {before}")
                before = now
        facts = [total, summary["listed"], min(summary["leaks"] + summary["changed"], leaks.MOST)]
        of_texts = [each["leaked"] + each["changed"] <= each["rows"] for each in summary["texts"]]
        if len({*facts}) > 1 or not all(of_texts):
            few.add("counts", leaks.SUMMARY, f"{facts} leaks, or more than a text has rows")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        yield Violation("readable", leaks.ROWS, f"{error!r}")
    yield from few.added()


def token_steps(subject: Subject) -> Iterator[Violation]:
    """Yields what the alignments in the dataset of a tokenizer break, where it has some."""
    folder = subject.folder
    marks = json.loads(str(subject.config.get("steps") or "{}"))
    for key in splits_in(folder, "{split}.align.jsonl"):
        yield from alignment_laws(folder, key, marks.get(key, {}).values())
        yield from index_laws(folder, folder, key)


def alignment(subject: Subject) -> Iterator[Violation]:
    """Yields what an alignment breaks by itself."""
    yield from nothing(subject, "{split}.align.jsonl")
    labels = json.loads(str(subject.config.get("steps") or "{}")).values()
    yield from alignment_laws(subject.folder, subject.partition, labels)


def aligned_index(subject: Subject) -> Iterable[Violation]:
    """Yields where an alignment is not one of the index of its shards."""
    return index_laws(subject.folder, subject.inputs[1], subject.partition)


def report(subject: Subject) -> Iterator[Violation]:
    """Yields what a daily report breaks."""
    if not subject.has_record and not reports.dates(subject.folder):
        yield Violation("files", ".", "there is no report <date>.json")
    yield from report_laws(subject.folder, subject.partition)


def nothing(subject: Subject, name: str) -> Iterator[Violation]:
    """A violation where no split has a file in a folder without a record."""
    if not subject.has_record and not splits_in(subject.folder, name):
        yield Violation("files", ".", f"there is no <corpus>/{name.format(split='<split>')}")
