"""What must hold of a Sudoku dataset: the rules of every row, and one solution for every source.

A symmetry keeps the number of solutions, so the source of a group is solved for all of them.
Source: docs/formats/puzzles.md#sudoku-findings
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.boards import CELLS, SUDOKU_ENCODING
from gristmill.puzzles.laws.contract import encoding_laws, unnamed_laws
from gristmill.puzzles.read.rows import Dataset, Rows, SetArrays

Clues = npt.NDArray[np.int32]
Groups = npt.NDArray[np.int64]
_Finding = tuple[str, int, str]
"""Law, row, and what is wrong."""
_TOGETHER: Final = 4096
"""Rows that are checked together: few enough for the cache of a processor."""


def sudoku_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks a rule in a Sudoku dataset, whose index arrays keep the contract."""
    dataset = Dataset.of(dataset)
    return or_unreadable(_sudoku_laws(dataset), str(dataset.folder))


def _sudoku_laws(dataset: Dataset) -> Iterator[Violation]:
    is_solved = dataset.config.get("unique") != "off"
    yield from encoding_laws(dataset, SUDOKU_ENCODING)
    yield from unnamed_laws(dataset)
    checked = []
    for split, name in dataset.sets():
        each = _Set(dataset, split, name, is_solved)
        yield from each.violations()
        checked.append(each)
    yield from _repeats(checked)


class _Set:
    """One set: its rows are read once, and the sources of its groups are kept as invariants."""

    def __init__(self, dataset: Dataset, split: str, name: str, is_solved: bool) -> None:
        self.split, self.name, self.place = split, name, f"{split}/{name}"
        self._dataset, self._is_solved = dataset, is_solved
        self._few = Few(self.place)
        self.arrays: SetArrays = dataset.arrays(split, name)
        bounds = self.arrays.puzzle_indices[:][self.arrays.group_indices[:]]
        self.sources = np.asarray(bounds[:-1], np.int64)
        self.invariants = np.zeros(len(self.sources), np.uint64)

    def violations(self) -> Iterator[Violation]:
        if self.arrays.inputs.shape[1] != CELLS:
            found = f"{self.arrays.inputs.shape[1]} tokens, not {CELLS}"
            yield Violation("seq_len_mismatch", self.place, found)
            return
        for findings in self._dataset.each(self.split, self.name, self._looked, _TOGETHER):
            for law, row, what in findings:
                yield from self._few.at(law, f"{self.place} row {row}", what)
        yield from self._few.rest()

    def _looked(self, rows: Rows) -> list[_Finding]:
        from gristmill.puzzles.domains.sudoku_checks import described

        here = rows.first + np.arange(len(rows.inputs))
        group = np.searchsorted(self.sources, here, "right") - 1
        source = self.sources[group]
        findings, clues = _checked(rows.inputs, rows.labels)
        expected = clues[np.maximum(source - rows.first, 0)]
        if source[0] < rows.first:  # the first group began in an earlier batch
            before = source[:1]
            of_source = _checked(self.arrays.inputs[before], self.arrays.labels[before])[1]
            expected[source < rows.first] = of_source
        found: list[_Finding] = [
            (law, rows.first + row, "breaks a rule of Sudoku")
            for row in np.flatnonzero(findings).tolist()
            for law in described(rows.inputs[row], rows.labels[row])
        ]
        found += [
            (
                "clues_differ",
                rows.first + row,
                f"has {clues[row]} clues, its source {expected[row]}",
            )
            for row in np.flatnonzero(clues != expected).tolist()
        ]
        own = np.flatnonzero(source == here)
        return found + self._solved(rows.inputs[own], findings[own], group[own])

    def _solved(
        self, inputs: npt.NDArray[Any], findings: npt.NDArray[np.uint8], groups: Groups
    ) -> list[_Finding]:
        """Note the invariants of sources, and solve those without findings."""
        from gristmill.puzzles.domains.sudoku_checks import solutions_of
        from gristmill.puzzles.domains.sudoku_symmetry import invariants

        boards = _digits(inputs)
        self.invariants[groups] = invariants(boards)
        if not self._is_solved:
            return []
        whole = np.flatnonzero(findings == 0)
        solutions = solutions_of(boards[whole])[1]
        rows = self.sources[groups][whole]
        return [
            (
                "not_unique",
                int(rows[k]),
                "has more than one solution" if solutions[k] > 1 else "takes too long to solve",
            )
            for k in np.flatnonzero(solutions != 1).tolist()
        ]

    def boards(self, groups: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """The questions of the sources of groups, as digits."""
        tokens = np.asarray(self.arrays.inputs[self.sources[groups]])
        return _digits(tokens)


def _checked(
    inputs: npt.NDArray[Any], labels: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.uint8], Clues]:
    """The findings of each row, as bits, and its clues."""
    from gristmill.puzzles.domains.sudoku_checks import check

    findings, clues = np.empty(len(inputs), np.uint8), np.empty(len(inputs), np.int32)
    check(_narrow(inputs), _narrow(labels), findings, clues)
    return findings, clues


def _narrow(tokens: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Tokens in a type that the compiled checks know; no wrong value becomes a valid one."""
    if tokens.dtype in (np.uint8, np.int32):
        return tokens
    narrowed: npt.NDArray[np.int32] = np.clip(tokens, -1, 127).astype(np.int32)
    return narrowed


def _digits(tokens: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Tokens of boards as digits; a wrong token counts as the nearest one."""
    digits: npt.NDArray[np.uint8] = (np.clip(tokens, 1, 10) - 1).astype(np.uint8)
    return digits


def _repeats(sets: list[_Set]) -> Iterator[Violation]:
    """Sources that are twice in a set, and test sources that training has up to symmetry."""
    sets = [each for each in sets if each.arrays.inputs.shape[1] == CELLS]
    for each in sets:
        yield from _duplicates(each)
    from gristmill.puzzles.domains.sudoku_symmetry import canonical_forms

    trained: dict[bytes, str] = {}
    known = [each.invariants for each in sets if each.split == "train"]
    tested = [each.invariants for each in sets if each.split == "test"]
    if not known or not tested:
        return
    shared = np.intersect1d(np.concatenate(known), np.concatenate(tested))
    for each in sets:
        few = Few(each.place)
        groups = np.flatnonzero(np.isin(each.invariants, shared))
        for group, form in zip(groups.tolist(), canonical_forms(each.boards(groups)), strict=True):
            row = int(each.sources[group])
            if each.split == "train":
                trained[form.tobytes()] = f"{each.place} row {row}"
            elif (twin := trained.get(form.tobytes())) is not None:
                place = f"{each.place} row {row}"
                yield from few.at("leak", place, f"is {twin} up to symmetry")
        yield from few.rest()


def _duplicates(each: _Set) -> Iterator[Violation]:
    marks, counts = np.unique(each.invariants, return_counts=True)
    groups = np.flatnonzero(np.isin(each.invariants, marks[counts > 1]))
    few = Few(each.place)
    seen: dict[bytes, int] = {}
    for first in range(0, len(groups), 4096):
        here = groups[first : first + 4096]
        for group, board in zip(here.tolist(), each.boards(here), strict=True):
            row = int(each.sources[group])
            if (other := seen.setdefault(board.tobytes(), row)) != row:
                found = f"has the question of row {other}"
                yield from few.at("duplicate", f"{each.place} row {row}", found)
    yield from few.rest()
