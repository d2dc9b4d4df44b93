"""Which Sudokus of a table a dataset takes: no duplicates, a subsample, unique ones, no leaks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.builders.sudoku_table import Table, read_boards
from gristmill.puzzles.config import SudokuConfig
from gristmill.puzzles.domains.source_key import source_key
from gristmill.puzzles.domains.sudoku.board import KIND, text_of
from gristmill.puzzles.domains.sudoku.canonical import canonical_forms
from gristmill.puzzles.domains.sudoku.solver import solutions_of
from gristmill.puzzles.format.names import SPLITS
from gristmill.run.workers import threaded_map

RowNumbers = npt.NDArray[np.int64]

FIRST_REPEAT: Final = "first repeat in "
"""Begins the names of counts that are lines: of each file that of the first row left out."""
_TOGETHER: Final = 8192
_SHOWN: Final = 10


def chosen_rows(table: Table, config: SudokuConfig, counts: Counter[str]) -> dict[str, RowNumbers]:
    """The rows of each split in the order of the dataset.

    Raises BadInput for leaks, where they are refused.
    """
    chosen: dict[str, RowNumbers] = {}
    for number, split in enumerate(SPLITS):
        rows = _without_duplicates(table, np.flatnonzero(table.splits == number), counts)
        size = config.subsample_size if split == "train" else None
        is_drawn = size is not None and size < len(rows)
        if is_drawn:
            rows = _in_drawn_order(table, rows, config.seed)
        if config.unique == "drop":
            rows = _unique_ones(table, rows, config.workers, size if is_drawn else None, counts)
        chosen[split] = rows[:size] if is_drawn else rows
    chosen["test"] = _without_leaks(table, chosen["train"], chosen["test"], config, counts)
    return chosen


def _without_duplicates(table: Table, rows: RowNumbers, counts: Counter[str]) -> RowNumbers:
    """The rows without those whose question an earlier row of the split has."""
    marks = table.invariants[rows]
    order = np.argsort(marks, kind="stable")
    same = marks[order][1:] == marks[order][:-1]
    members = order[np.r_[False, same][: len(rows)] | np.r_[same, False][: len(rows)]]
    repeated = np.zeros(len(rows), bool)
    seen: set[bytes] = set()
    mark = None
    for first in range(0, len(members), _TOGETHER):
        places = members[first : first + _TOGETHER]
        questions, _ = table.read(rows[places])
        for place, question in zip(places.tolist(), questions, strict=True):
            if marks[place] != mark:
                mark = marks[place]
                seen.clear()
            text = question.tobytes()
            repeated[place] = text in seen
            seen.add(text)
    counts["duplicates_removed"] += int(np.count_nonzero(repeated))
    files, places = np.unique(table.files[rows[repeated]], return_index=True)
    for number, row in zip(files.tolist(), rows[repeated][places].tolist(), strict=True):
        # A file has rows of both splits where it is a bank.
        name, line = FIRST_REPEAT + table.sources[number].path, int(table.lines[row])
        counts[name] = min(line, counts[name] or line)
    return rows[~repeated]


def _in_drawn_order(table: Table, rows: RowNumbers, seed: int) -> RowNumbers:
    keys = np.empty(len(rows), np.uint64)
    for first in range(0, len(rows), _TOGETHER):
        questions, _ = table.read(rows[first : first + _TOGETHER])
        for k, question in enumerate(questions):
            keys[first + k] = source_key(seed, f"{KIND}:subsample", text_of(question))
    return rows[np.argsort(keys, kind="stable")]


@dataclass(frozen=True)
class _Solvable:
    """Says which rows of a table's file have one solution, and which took too long."""

    boards: Path

    def __call__(self, rows: RowNumbers) -> npt.NDArray[Any]:
        questions, _ = read_boards(self.boards, rows)
        return solutions_of(questions)[1]


def _unique_ones(
    table: Table, rows: RowNumbers, workers: int, most: int | None, counts: Counter[str]
) -> RowNumbers:
    """The rows with one solution, in order; the first `most` of them where that is set."""
    kept: list[RowNumbers] = []
    together = [rows[first : first + _TOGETHER] for first in range(0, len(rows), _TOGETHER)]
    found = 0
    results = threaded_map(_Solvable(table.boards), together, workers)
    for batch, solutions in zip(together, results, strict=False):
        kept.append(batch[solutions == 1])
        found += len(kept[-1])
        counts["ambiguous_dropped"] += len(batch) - len(kept[-1])
        if most is not None and found >= most:
            break
    results.close()
    return np.concatenate([np.empty(0, np.int64), *kept])


def _without_leaks(
    table: Table, train: RowNumbers, test: RowNumbers, config: SudokuConfig, counts: Counter[str]
) -> RowNumbers:
    """The test rows that are no training row up to symmetry."""
    originals = _forms(table, train[np.isin(table.invariants[train], table.invariants[test])])
    suspects = _forms(table, test[np.isin(table.invariants[test], table.invariants[train])])
    row_of = {form: row for row, form in reversed(originals)}
    leaks = [(row, row_of[form]) for row, form in suspects if form in row_of]
    if leaks and config.leaks == "refuse":
        shown = ", ".join(f"{table.where(a)} of {table.where(b)}" for a, b in leaks[:_SHOWN])
        more = ", ..." if len(leaks) > _SHOWN else ""
        raise BadInput(
            KIND,
            f"{len(leaks):,} puzzles of the test split are twins of training puzzles, equal or up"
            f" to symmetry: {shown}{more}; take them out, or build with leaks = drop",
        )
    counts["leaks_dropped"] += len(leaks)
    return test[~np.isin(test, [row for row, _ in leaks])]


def _forms(table: Table, rows: RowNumbers) -> list[tuple[int, bytes]]:
    """Row and canonical form of rows."""
    forms: list[tuple[int, bytes]] = []
    for first in range(0, len(rows), _TOGETHER):
        here = rows[first : first + _TOGETHER]
        canonical = canonical_forms(table.read(here)[0])
        forms += zip(here.tolist(), (form.tobytes() for form in canonical), strict=True)
    return forms
