"""What must hold of every example of an ARC dataset, and of its puzzles and groups.

Compiled checks say where a grid is in its tokens, and whether it is right. They share no code with
the kernels that write examples.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.contract import GristmillError, Violation
from gristmill.laws import MOST, Few
from gristmill.puzzles import format as names
from gristmill.puzzles.builders.arc import TASK_HASH, is_same_pair
from gristmill.puzzles.domains.arc_grid import (
    COLOURS,
    ENCODING,
    EOS,
    FIRST_COLOUR,
    SEQ_LEN,
    SIDE,
    TRM_MARK,
    Augmentation,
    Grid,
    is_task_id,
    parse_id,
    task_hash,
)
from gristmill.puzzles.domains.grid import SYMMETRIES, affine
from gristmill.puzzles.format.dataset import SourceFile
from gristmill.puzzles.laws.contract import encoding_laws, guarded
from gristmill.puzzles.read.rows import Dataset, Rows, SetArrays, index_faults
from gristmill.run.kernels import kernel

_NO_CHANGE: Final = Augmentation()
_ZERO: Final = ord("0")


@dataclass(frozen=True)
class Identifiers:
    """The identifiers by number: the task, -1 for the blank one and no id, and augmentation."""

    task: npt.NDArray[np.int64]
    is_task: npt.NDArray[np.bool_]
    symmetries: npt.NDArray[np.uint8]
    colours: npt.NDArray[np.uint8]


def parsed(listed: Sequence[str], is_trm: bool = False) -> Identifiers:
    """Take identifiers apart."""
    numbers: dict[str, int] = {}
    task = np.full(len(listed), -1, np.int64)
    is_task = np.zeros(len(listed), np.bool_)
    # Kernels take these numbers without looking at them.
    symmetries, colours = bytearray(len(listed)), [_NO_CHANGE.colours] * len(listed)
    for number, name in enumerate(listed):
        is_marked = TRM_MARK in name
        if name == names.BLANK or (is_marked and not is_trm):
            continue
        try:
            base, change = parse_id(name) if is_marked or not is_trm else (_task_id(name), None)
        except GristmillError:
            continue
        task[number] = numbers.setdefault(base, len(numbers))
        is_task[number] = change is None
        symmetries[number], colours[number] = change or _NO_CHANGE
    digits = np.frombuffer("".join(colours).encode(), np.uint8).reshape(-1, COLOURS) - _ZERO
    return Identifiers(task, is_task, np.frombuffer(symmetries, np.uint8), digits)


def _task_id(name: str) -> str:
    if not is_task_id(name):
        raise GristmillError(f"{name!r:.80} is not an id of a task")
    return name


def identifier_laws(listed: Sequence[str], found: Identifiers) -> Iterator[Violation]:
    """Yield identifiers that are no ids of ARC puzzles; blank ones are of no puzzle."""
    few = Few(names.IDENTIFIERS, "{count:,} in all")
    for number in (1 + np.flatnonzero(found.task[1:] < 0)).tolist():
        if listed[number] != names.BLANK:
            yield from few.at("identifier", f"{names.IDENTIFIERS} {number}", f"{listed[number]!r}")
    yield from few.rest()


def split_laws(dataset: Dataset, found: Identifiers) -> Iterator[Violation]:
    """Every puzzle of the test split is one of the training split."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for split, set_name in dataset.sets():
        listed = np.asarray(dataset.arrays(split, set_name).puzzle_identifiers)
        numbers[split].update(listed.tolist())
    few = Few(names.IDENTIFIERS, "{count:,} in all")
    for number in sorted(numbers["test"] - numbers["train"]):
        where = f"{names.IDENTIFIERS} {number}"
        yield from few.at("identifier", where, "is in the test split alone: nothing trains it")
    yield from few.rest()


_SIDES: Final = names.TOKENS
_Ints = npt.NDArray[np.int64]
_Finding = tuple[str, str, npt.NDArray[np.bool_], str]
"""Law, what of the set, which of them, and what is wrong."""
_BORDER: Final = "is not one grid of colours with EOS on its border"
_INVERSE: Final = "is not the first puzzle of the group after the augmentation of its id"


@dataclass
class _Built:
    """What a dataset holds of one file."""

    pairs: dict[int, tuple[Grid, Grid]] = field(default_factory=dict)
    numbers: dict[str, set[int]] = field(default_factory=lambda: {s: set() for s in names.SPLITS})


_Tasks = dict[int, _Built]
"""By the number of the file."""


def _leaks(file: SourceFile, built: _Built) -> Iterator[Violation]:
    """Test pairs that are, cell by cell, pairs of the task in training."""
    for number in sorted(built.numbers["test"]):
        for other in sorted(built.numbers["train"]):
            if is_same_pair(built.pairs[number], built.pairs[other]):
                yield Violation("leak", file.path, f"test pair {number} is training pair {other}")


@guarded
def arc_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yield what breaks the rules of ARC in a dataset; what the seed draws is not drawn again."""
    yield from encoding_laws(dataset, ENCODING)
    is_trm = (dataset.folder / names.TEST_PUZZLES).is_file()
    found = parsed(dataset.identifiers, is_trm)
    yield from identifier_laws(dataset.identifiers, found)
    tasks: _Tasks = defaultdict(_Built)
    offenders = Few("all", "{count:,} in all")
    for split, set_name in dataset.sets():
        _Set(dataset, split, set_name, found, offenders).check(tasks)
    yield from offenders.added()
    yield from split_laws(dataset, found)
    if dataset.kind is None:
        return
    files = dataset.sources.files
    for number, file in enumerate(files):
        built = tasks.get(number, _Built())
        yield from _leaks(file, built)
        if task_hash(built.pairs.values()) != file.facts.get(TASK_HASH):
            yield Violation("source", file.path, "the pairs have not the hash of the source file")
    for number in sorted(set(tasks) - set(range(len(files)))):
        yield Violation("source", f"file {number}", f"is not in {names.SOURCES}")


class _Originals(NamedTuple):
    """The grids of one side (inputs or labels) of the first puzzles of all groups."""

    cells: Grid
    starts: _Ints
    shapes: npt.NDArray[np.int32]
    steps: _Ints

    def grid(self, number: int) -> Grid:
        height, width = self.shapes[number].tolist()
        start = int(self.starts[number])
        return self.cells[start : start + height * width].reshape(height, width)


def _originals(tokens: npt.NDArray[np.integer], placed: npt.NDArray[np.int32]) -> _Originals:
    grids = [
        line.reshape(SIDE, SIDE)[row : row + height, column : column + width].reshape(-1)
        for line, (row, column, height, width) in zip(tokens, placed.tolist(), strict=True)
    ]
    sizes = np.array([len(grid) for grid in grids], np.int64)
    cells = (np.concatenate([*grids, np.empty(0, np.uint8)]) - FIRST_COLOUR).astype(np.uint8)
    shapes = placed[:, 2:]
    known = {
        shape: [affine(symmetry, *shape) for symmetry in range(SYMMETRIES)]
        for shape in set(map(tuple, shapes.tolist()))
    }
    steps = np.array([known[tuple(shape)] for shape in shapes.tolist()], np.int64)
    return _Originals(cells, np.cumsum(sizes) - sizes, np.ascontiguousarray(shapes), steps)


@dataclass
class _Set:
    """One set of a split, and what is found in it."""

    dataset: Dataset
    split: str
    set_name: str
    ids: Identifiers
    offenders: Few

    def check(self, tasks: _Tasks) -> None:
        """Check the set; add its first puzzles to `tasks`."""
        arrays = self.dataset.arrays(self.split, self.set_name)
        self.where = f"{self.split} {self.set_name}"
        if not self._has_groups(arrays):
            return

        rows = self._original_rows
        sides = [np.asarray(getattr(arrays, side)[rows]) for side in _SIDES]
        placed = [places(tokens) for tokens in sides]
        self._originals = [
            _originals(tokens, each) for tokens, each in zip(sides, placed, strict=True)
        ]
        if arrays.origins is not None:
            for number, (file, pair, _) in enumerate(np.asarray(arrays.origins[rows]).tolist()):
                before, after = (each.grid(number) for each in self._originals)
                tasks[file].pairs[pair] = (before, after)
                tasks[file].numbers[self.split].add(pair)
        self._is_fixed = np.zeros(len(self._puzzles) - 1, np.bool_)
        for first, findings in self.dataset.each(self.split, self.set_name, self._looked):
            for law, what, wrong, found in findings:
                self._report(law, what, wrong, found, first)
        if self.split == "train":
            self._report("translation", "puzzle", ~self._is_fixed, "no example begins at (0, 0)")

    def _report(
        self, law: str, what: str, wrong: npt.NDArray[Any], found: str, at: int = 0
    ) -> None:
        if len(numbers := at + np.flatnonzero(wrong)):
            places = ((f"{self.where} {what} {row}", found) for row in numbers[:MOST].tolist())
            self.offenders.add_all(law, len(numbers), places)

    def _has_groups(self, arrays: SetArrays) -> bool:
        """Note the structure of the set; whether it is one that rows can be checked by."""
        self._puzzles = np.asarray(arrays.puzzle_indices).astype(np.int64)
        groups = np.asarray(arrays.group_indices).astype(np.int64)
        numbers = np.asarray(arrays.puzzle_identifiers)
        faults = index_faults(arrays, self.dataset.metadata(self.split))
        if any(faults) or not len(numbers) or numbers.max() >= len(self.ids.task):
            self.offenders.add("groups", f"{self.where} 0", "see the contract")
            return False
        self._ids = numbers
        self._group_of = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
        first = groups[:-1]
        self._first = first[self._group_of]
        sizes = np.diff(self._puzzles)
        task, is_task = self.ids.task[numbers], self.ids.is_task[numbers]
        wrong = (task < 0) | (task != task[self._first])
        wrong |= is_task != (np.arange(len(numbers)) == self._first)
        self._report("group", "puzzle", wrong, "its id is not one of its group")
        self._report(
            "group", "puzzle", sizes != sizes[self._first], "has not as many examples as the first"
        )
        _, counts = np.unique(numbers, return_counts=True)
        self._report("group", "identifier", counts > 1, "names two puzzles")
        # Rows of the first puzzles, one after another, and where those of each group begin.
        of_first = np.repeat(self._puzzles[first], sizes[first])
        self._original_at = np.cumsum(sizes[first]) - sizes[first]
        offsets = np.arange(len(of_first)) - np.repeat(self._original_at, sizes[first])
        self._original_rows = of_first + offsets
        return bool((sizes == sizes[self._first]).all())

    def _looked(self, batch: Rows) -> tuple[int, list[_Finding]]:
        """The number of the first row of a batch, and what is wrong with its rows."""
        rows = np.arange(batch.first, batch.first + len(batch.inputs))
        puzzle = np.searchsorted(self._puzzles, rows, "right") - 1
        original = self._original_at[self._group_of[puzzle]] + rows - self._puzzles[puzzle]
        ids = self._ids[puzzle]
        sides = (batch.inputs, batch.labels)
        placed = [places(tokens) for tokens in sides]
        is_whole = (placed[0][:, 2] > 0) & (placed[1][:, 2] > 0)
        findings: list[_Finding] = [
            ("border", f"{side} row", each[:, 2] == 0, _BORDER)
            for side, each in zip(_SIDES, placed, strict=True)
        ]
        differ = (placed[0][:, :2] != placed[1][:, :2]).any(axis=1) & is_whole
        findings.append(("place", "row", differ, "input and label begin at two places"))
        at_origin = (placed[0][:, :2] == 0).all(axis=1)
        if self.split == "train":
            self._is_fixed[puzzle[at_origin]] = True
        else:
            moved = ~at_origin & is_whole
            findings.append(("translation", "row", moved, "does not begin at (0, 0)"))
        augmentations = (self.ids.symmetries[ids], self.ids.colours[ids])
        for side, tokens, each, of in zip(_SIDES, sides, placed, self._originals, strict=True):
            wrong = unequal(tokens, each, *of[:3], original, of.steps, *augmentations)
            findings.append(("inverse", f"{side} row", wrong & is_whole, _INVERSE))
        return batch.first, [each for each in findings if each[2].any()]


@kernel(nogil=True)
def places(tokens):
    """Where each row's grid is: row, column, height, width, int32 [n, 4]; zeros for no grid."""
    found = np.zeros((tokens.shape[0], 4), np.int32)
    for number in range(tokens.shape[0]):
        cells = tokens[number]
        filled = 0
        for cell in range(SEQ_LEN):
            filled += cells[cell] != 0
        corner = 0
        while corner < SEQ_LEN and cells[corner] == 0:
            corner += 1
        if corner == SEQ_LEN:
            continue
        height, width = _extent(cells, corner)
        # Nothing else is filled, where all that belongs to the grid is in its place.
        if height > 0 and filled == _whole(cells, corner, height, width):
            found[number] = corner // SIDE, corner % SIDE, height, width
    return found


@njit
def _extent(cells, corner):
    """Height and width of the cells with a colour from a corner on."""
    row, column = corner // SIDE, corner % SIDE
    width = 0
    while column + width < SIDE and cells[corner + width] >= FIRST_COLOUR:
        width += 1
    height = 0
    while row + height < SIDE and cells[corner + height * SIDE] >= FIRST_COLOUR:
        height += 1
    return height, width


@njit
def _whole(cells, corner, height, width):
    """How many cells a grid and its border have; -1 where one of them is wrong."""
    row, column = corner // SIDE, corner % SIDE
    count = height * width
    is_whole = True
    for line in range(height):
        at = corner + line * SIDE
        for cell in range(width):
            token = cells[at + cell]
            is_whole &= token >= FIRST_COLOUR and token < FIRST_COLOUR + COLOURS
        if column + width < SIDE:
            is_whole &= cells[at + width] == EOS
            count += 1
    if row + height < SIDE:
        at = corner + height * SIDE
        for cell in range(width):
            is_whole &= cells[at + cell] == EOS
        count += width
    return count if is_whole else -1


@kernel(nogil=True)
def unequal(tokens, placed, cells, starts, shapes, original_of, steps, symmetries, colours):
    """Which rows, bool [n], are not their originals after the symmetry and colours of each."""
    wrong = np.zeros(tokens.shape[0], np.bool_)
    for number in range(tokens.shape[0]):
        row, column, height, width = placed[number]
        other = original_of[number]
        high, wide = shapes[other]
        symmetry = symmetries[number]
        if symmetry == 1 or symmetry == 3 or symmetry >= 6:
            high, wide = wide, high
        if height != high or width != wide:
            wrong[number] = True
            continue
        # Unsigned numbers need no look at indices below 0, and wrap around as they should.
        start = np.uint64(starts[other] + steps[other, symmetry, 0])
        down, right = np.uint64(steps[other, symmetry, 1]), np.uint64(steps[other, symmetry, 2])
        renamed = colours[number] + FIRST_COLOUR
        line = tokens[number]
        to = np.uint64(row * SIDE + column)
        across = np.uint64(width)
        differs = False
        for _ in range(height):
            for cell in range(across):
                differs |= line[to + cell] != renamed[cells[start + cell * right]]
            start += down
            to += np.uint64(SIDE)
        wrong[number] = differs
    return wrong
