"""Laws of daily reports. Source: `docs/formats/reasoning.md#reports`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gristmill.contract import GristmillError, Violation
from gristmill.corpora.corpus import is_key
from gristmill.reasoning.format import reports


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
