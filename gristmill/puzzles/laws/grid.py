"""What must hold of mazes and of grids of any symbols: rows, symmetries, and both splits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.boards import maze_encoding, side_of
from gristmill.puzzles.domains.grid import (
    PAD,
    SYMMETRIES,
    Symbols,
    extents,
    index_maps,
    turned_cells,
)
from gristmill.puzzles.domains.maze_paths import RULES, canonical, findings, rule_names
from gristmill.puzzles.format import names
from gristmill.puzzles.laws.contract import encoding_laws, unnamed_laws
from gristmill.puzzles.read.rows import Dataset, Integers, Rows, SetArrays

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
        for field, tokens in (("inputs", rows.inputs), ("labels", rows.labels)):
            grids = tokens.reshape(-1, *self._sides)
            sizes = extents(grids)
            is_whole = ~(sizes == 0).any(axis=1)
            if self._is_whole:
                is_whole &= (grids != PAD).sum(axis=(1, 2)) == sizes.prod(axis=1)
            found += [("border", int(row), f"the {field} {_BORDER}") for row in here[~is_whole]]
            if self._turned > 1:
                of_source = np.asarray(getattr(self._arrays, field)[sources])
                wrong = (self._turns(of_source, draws) != tokens).any(axis=1)
                rule = "is not the symmetry of its puzzle that its place says"
                found += [("symmetry", int(row), f"the {field} {rule}") for row in here[wrong]]
        own = np.flatnonzero(draws == 0)
        marks = [
            (int(here[k]), mark_of((rows.inputs[k], rows.labels[k]), self._sides, self._dihedral))
            for k in own.tolist()
        ]
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


def mark_of(tokens: Sequence[npt.NDArray[Any]], sides: tuple[int, int], is_dihedral: bool) -> bytes:
    """A hash of an example, 16 bytes; with `is_dihedral` the same for its turns and flips.

    tokens: of input and label, integers [cells]. sides: rows and columns of the cells.
    """
    shapes = [tuple(extents(each.reshape(1, *sides))[0].tolist()) for each in tokens]
    forms = []
    for symmetry in range(SYMMETRIES if is_dihedral else 1):
        form = b""
        for each, shape in zip(tokens, shapes, strict=True):
            cells = turned_cells(symmetry, shape, sides)
            form += np.where(cells < 0, PAD, each[cells]).astype(np.int32).tobytes()
        forms.append(form)
    return hashlib.blake2b(min(forms), digest_size=16).digest()


_BATCH_BYTES: Final = 1 << 20


def maze_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the rules of mazes in a dataset, the first 20 of each law by name."""
    dataset = Dataset.of(dataset)
    few = Few(str(dataset.folder), "{more:,} more violations")
    return or_unreadable(few.of(_maze_violations(dataset)), str(dataset.folder))


def _maze_violations(dataset: Dataset) -> Iterator[Violation]:
    yield from unnamed_laws(dataset)
    if side := side_of(dataset.metadata("train").seq_len):
        yield from encoding_laws(dataset, maze_encoding(side))
    has_symmetries = dataset.config.get("aug") is True
    trained: set[bytes] = set()
    seen: dict[str, set[bytes]] = {split: set() for split in names.SPLITS}
    for split, set_name in dataset.sets():
        arrays = dataset.arrays(split, set_name)
        count, width = arrays.inputs.shape
        place = f"{split}/{set_name}"
        if side_of(width) is None:
            yield Violation("not_square", place, f"{width} tokens a row are no square maze")
            continue
        group = SYMMETRIES if has_symmetries and split == "train" else 1
        if dataset.kind is None and split == "train":
            # Without a config its first group says whether there are symmetries.
            group = SYMMETRIES if arrays.group_indices[1:2].tolist() == [SYMMETRIES] else 1
        if not np.array_equal(arrays.group_indices, np.arange(0, count + 1, group)):
            found = f"must have {group} puzzles in every group"
            yield Violation("group", names.array(split, set_name, "group_indices"), found)
            continue
        origins = arrays.origins
        if origins is not None and (origins[:, 2] != np.arange(count) % group).any():
            found = f"must have the symmetries 0 to {group - 1} of each group in order"
            yield Violation("group", names.origins(split, set_name), found)
        step = max(1, _BATCH_BYTES // (group * width * arrays.inputs.itemsize)) * group
        look = partial(_maze_rows, place, group)
        for first, violations, keys in dataset.each(split, set_name, look, step):
            yield from violations
            yield from _twice(place, first, keys, group, seen[split], trained)
        if split == "train":
            trained = seen[split]


def _maze_rows(place: str, group: int, rows: Rows) -> tuple[int, list[Violation], list[bytes]]:
    """The number of the first row, what is wrong with the rows, and the keys of their groups."""
    violations = list(_row_violations(place, group, rows))
    return rows.first, violations, canonical(rows.inputs[::group])


def _row_violations(place: str, group: int, rows: Rows) -> Iterator[Violation]:
    broken = findings(rows.inputs[::group], rows.labels[::group])
    for source in np.flatnonzero(broken).tolist():
        for name in rule_names(int(broken[source])):
            row = rows.first + source * group
            yield Violation(name, f"{place} row {row}", RULES[name])
    if group == 1:
        return
    maps = index_maps(side_of(rows.inputs.shape[1]) or 1)
    differs = _differing(rows.inputs, maps, group) | _differing(rows.labels, maps, group)
    for row in np.flatnonzero(differs).tolist():
        where = f"{place} row {rows.first + row}"
        yield Violation("group", where, f"is not symmetry {row % group} of the group's first row")


def _twice(
    place: str,
    first: int,
    keys: list[bytes],
    group: int,
    seen: set[bytes],
    trained: set[bytes],
) -> Iterator[Violation]:
    """Mazes that an earlier row has; the keys of the others go to `seen`."""
    for source, key in enumerate(keys):
        where = f"{place} row {first + source * group}"
        if key in seen:
            yield Violation("distinct", where, "its split has the same maze before, up to symmetry")
        if key in trained:
            yield Violation("leak", where, "the training split has the same maze, up to symmetry")
        seen.add(key)


def _differing(tokens: Integers, maps: Integers, group: int) -> npt.NDArray[np.bool_]:
    """Which rows are not their symmetry of the first row of their group, bool [rows]."""
    rows = np.arange(len(tokens))
    symmetry = rows % group
    expected = np.take_along_axis(tokens[rows - symmetry], maps[symmetry], axis=1)
    differs: npt.NDArray[np.bool_] = (expected != tokens).any(axis=1)
    return differs
