"""What must hold of grids of any symbols: rows, symmetries, and the splits beside each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.grid import PAD, SYMMETRIES, Symbols, extents, turned_cells
from gristmill.puzzles.format import names
from gristmill.puzzles.laws.contract import encoding_laws, unnamed_laws
from gristmill.puzzles.read.rows import Dataset, Rows, SetArrays

_Finding = tuple[str, int, str]
_BORDER: Final = "is not one grid at the upper left, with padding right of it and below"


def grid_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the rules of grids in a dataset; without a trace nothing is looked at."""
    dataset = Dataset.of(dataset)
    few = Few(str(dataset.folder), "{more:,} more violations")
    return or_unreadable(few.of(_violations(dataset)), str(dataset.folder))


def _violations(dataset: Dataset) -> Iterator[Violation]:
    if dataset.kind is None:
        return
    config = dataset.config
    if not config["identifiers"]:
        yield from unnamed_laws(dataset)
    sides = (int(config["height"]), int(config["width"]))
    symbols = Symbols.of(config["alphabet"], config["values"], config["pad"])
    yield from encoding_laws(dataset, symbols.encoding(*sides))
    trained: set[bytes] = set()
    for split, set_name in dataset.sets():
        arrays = dataset.arrays(split, set_name)
        if arrays.inputs.shape[1] != sides[0] * sides[1]:
            continue  # the contract names it
        turned = SYMMETRIES if config["dihedral"] and split == "train" else 1
        yield from _groups(arrays, turned, f"{split}/{set_name}")
        if config["identifiers"]:
            yield from _names(dataset.identifiers, arrays, turned, f"{split}/{set_name}")
        looked = _Looked(arrays, sides, turned, bool(config["dihedral"]), config["pad"] is None)
        for found, marks in dataset.each(split, set_name, looked):
            for law, row, rule in found:
                yield Violation(law, f"{split}/{set_name} row {row}", rule)
            for row, mark in marks:
                if split == "train":
                    trained.add(mark)
                elif mark in trained:
                    rule = "training has the same example"
                    yield Violation("leak", f"{split}/{set_name} row {row}", rule)


def _groups(arrays: SetArrays, turned: int, place: str) -> Iterator[Violation]:
    """Puzzles that are not followed by their symmetries in order."""
    if arrays.origins is None:
        return
    draws = np.asarray(arrays.origins[np.asarray(arrays.puzzle_indices[:-1]), 2])
    begins = np.asarray(arrays.group_indices[:-1])
    if len(draws) % turned or (draws != np.arange(len(draws)) % turned).any():
        rule = f"must have the symmetries 0 to {turned - 1} of each puzzle in order"
        yield Violation("group", place, rule)
    elif (begins % turned).any():
        yield Violation("group", place, "a group begins within the symmetries of a puzzle")


def _names(listed: list[str], arrays: SetArrays, turned: int, place: str) -> Iterator[Violation]:
    """Puzzles without a name, or whose name is not that of their source and their symmetry."""
    numbers = np.asarray(arrays.puzzle_identifiers).tolist()
    for puzzle, number in enumerate(numbers):
        symmetry = puzzle % turned
        source = listed[numbers[puzzle - symmetry]]
        expected = f"{source}_t{symmetry}" if symmetry else source
        if not number or listed[number] != expected or expected == names.BLANK:
            yield Violation("identifier", f"{place} puzzle {puzzle}", f"must be {expected!r:.120}")


class _Looked:
    """What is wrong with the rows of a batch, and the marks of rows that are no symmetries."""

    def __init__(
        self,
        arrays: SetArrays,
        sides: tuple[int, int],
        turned: int,
        dihedral: bool,
        is_whole: bool,
    ) -> None:
        self._arrays, self._sides, self._is_whole = arrays, sides, is_whole
        self._puzzles = np.asarray(arrays.puzzle_indices).astype(np.int64)
        self._turned, self._dihedral = turned, dihedral
        self._cells = partial(turned_cells, sides=sides)

    def __call__(self, rows: Rows) -> tuple[list[_Finding], list[tuple[int, bytes]]]:
        here = rows.first + np.arange(len(rows.inputs))
        puzzle = np.searchsorted(self._puzzles, here, "right") - 1
        draws = puzzle % self._turned
        sources = self._puzzles[puzzle - draws] + here - self._puzzles[puzzle]
        sources = np.clip(sources, 0, len(self._arrays.inputs) - 1)
        found: list[_Finding] = []
        shapes = []
        for field, tokens in (("inputs", rows.inputs), ("labels", rows.labels)):
            grids = tokens.reshape(-1, *self._sides)
            sizes = extents(grids)
            is_whole = ~(sizes == 0).any(axis=1)
            if self._is_whole:
                is_whole &= (grids != PAD).sum(axis=(1, 2)) == sizes.prod(axis=1)
            found += [("border", int(row), f"the {field} {_BORDER}") for row in here[~is_whole]]
            shapes.append(sizes)
            if self._turned > 1:
                of_source = np.asarray(getattr(self._arrays, field)[sources])
                wrong = (self._turns(of_source, draws) != tokens).any(axis=1)
                rule = "is not the symmetry of its puzzle that its place says"
                found += [("symmetry", int(row), f"the {field} {rule}") for row in here[wrong]]
        own = np.flatnonzero(draws == 0)
        marks = [(int(here[k]), self._mark(rows, k, [s[k] for s in shapes])) for k in own.tolist()]
        return found, marks

    def _turns(self, tokens: npt.NDArray[Any], draws: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Rows of tokens after their symmetries."""
        made = tokens.copy()
        shapes = extents(tokens.reshape(-1, *self._sides))
        kinds, which = np.unique(np.c_[shapes, draws], axis=0, return_inverse=True)
        for number, (height, width, symmetry) in enumerate(kinds.tolist()):
            if symmetry and height and width:
                rows = np.flatnonzero(which.reshape(-1) == number)
                cells = self._cells(symmetry, (height, width))
                made[rows] = np.where(cells < 0, PAD, tokens[rows][:, cells])
        return made

    def _mark(self, rows: Rows, at: int, shapes: list[Any]) -> bytes:
        """A hash of an example, the same for its symmetries where these are made."""
        forms = []
        for symmetry in range(SYMMETRIES if self._dihedral else 1):
            form = b""
            for tokens, shape in zip((rows.inputs[at], rows.labels[at]), shapes, strict=True):
                cells = self._cells(symmetry, tuple(shape.tolist()))
                form += np.where(cells < 0, PAD, tokens[cells]).astype(np.int32).tobytes()
            forms.append(form)
        return hashlib.blake2b(min(forms), digest_size=16).digest()
