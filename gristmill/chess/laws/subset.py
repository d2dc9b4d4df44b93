"""Laws of a subset: counts and numbers of its rows, its vocabulary, the share of each stratum."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import SPLITS, SubsetConfig
from gristmill.chess.format.folders import SUBSET, SUBSET_VOCABULARY, split_file, subset_rows
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
