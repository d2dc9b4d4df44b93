"""Laws of a subset: its rows are those of the dataset, each stratum has its share."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import SPLITS, SubsetConfig
from gristmill.chess.format.names import SUBSET, SUBSET_VOCABULARY, split_file, subset_rows
from gristmill.chess.format.rows import moves_of
from gristmill.chess.laws.files import law, open_csv, read_json
from gristmill.chess.read.strata import strata_of
from gristmill.contract import Violation
from gristmill.families import Subject


@law
def subset_laws(subject: Subject) -> Iterator[Violation]:
    """Find where counts, strata, numbers of rows and the vocabulary do not agree with the rows."""
    path = subject.folder
    report, faults = read_json(path / SUBSET)
    yield from faults
    if faults:
        return
    config, words = SubsetConfig(**_tuples(report["config"])), set[str]()
    for split in SPLITS:
        said, where = report["splits"][split], str(split_file(path, split))
        rows = np.load(path / subset_rows(split))
        found = Counter(stratum for _, stratum in strata_of(split_file(path, split), config))
        taken = {name: count for name, (count, _) in said["strata"].items() if count}
        if dict(found) != taken or said["rows"] != len(rows) or sum(found.values()) != len(rows):
            yield Violation("subset_counted", where, f"{sum(found.values()):,} rows, {dict(found)}")
        if (np.diff(rows) <= 0).any() or (
            len(rows) and not 0 <= rows[0] <= rows[-1] < said["rows_of"]
        ):
            yield Violation(
                "rows_numbered", where, "numbers of rows do not rise within the dataset"
            )
        yield from _allotted(said, int(getattr(config, split)), config, where)
        if split == "train":
            words = _words(split_file(path, split), config)
    with open_csv(path / SUBSET_VOCABULARY) as table:
        listed = [(row["id"], row["move"]) for row in csv.DictReader(table)]
    expected = enumerate(["<PAD>", "<UNK>", *sorted(words)])
    if listed != [(str(number), move) for number, move in expected]:
        yield Violation(
            "vocabulary", str(path / SUBSET_VOCABULARY), "is not that of the train rows"
        )


@law
def copied_laws(subject: Subject) -> Iterator[Violation]:
    """Find rows that are not those of the dataset with their numbers."""
    (source,) = subject.inputs
    for split in SPLITS:
        rows: NDArray[np.int64] = np.load(subject.folder / subset_rows(split))
        with (
            split_file(source, split).open("rb") as lines,
            split_file(subject.folder, split).open("rb") as own,
        ):
            at = 0
            for number, line in zip(rows.tolist(), own, strict=False):
                if next(islice(lines, number - at, None), b"") != line:
                    where = f"{split_file(subject.folder, split)}: row {number} of the dataset"
                    yield Violation("rows_copied", where, "has other bytes")
                    break
                at = number + 1


def _allotted(
    said: Mapping[str, Any], most: int, config: SubsetConfig, where: str
) -> Iterator[Violation]:
    """Each stratum has its share: within a row of the proportion, or of every other open one."""
    strata: Mapping[str, tuple[int, int]] = said["strata"]
    total = sum(size for _, size in strata.values())
    if total != said["rows_of"] or said["rows"] != min(most, total):
        yield Violation("subset_sized", where, f"{said['rows']:,} rows of {total:,}, most {most:,}")
        return
    if config.shares == "equal":
        open_ones = [count for count, size in strata.values() if count < size]
        largest = max((count for count, _ in strata.values()), default=0)
        wrong = [count for count in open_ones if largest - count > 1]
    else:
        wrong = [c for c, size in strata.values() if abs(c * total - size * said["rows"]) >= total]
    if wrong:
        yield Violation(
            "strata_shared", where, f"a stratum with {wrong[0]:,} rows has another share"
        )


def _words(file: Path, config: SubsetConfig) -> set[str]:
    words: set[str] = set()
    with file.open("rb") as lines:
        for row in map(json.loads, lines):
            words.update(
                [*row["context"], *row["target"]] if config.of == "rows" else moves_of(row)
            )
    return words


def _tuples(config: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a config as JSON has them, with tuples for lists."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in config.items()}
