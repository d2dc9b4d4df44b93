"""Test puzzles of one dataset that the training split of another one has, up to symmetry.

Within a dataset its laws look for them. Source: docs/formats/puzzles.md#leaks
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import starmap
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.domains import arc_grid, domino_rows, grid
from gristmill.puzzles.domains.grid import MAZE, SUDOKU
from gristmill.puzzles.laws.games import mark_of
from gristmill.puzzles.read.rows import Dataset, Integers, SetArrays

_TOGETHER: Final = 4096
_U8 = np.uint64
_Places = npt.NDArray[np.int64]


class Twin(NamedTuple):
    """A test puzzle, and the training puzzle of another dataset that it is.

    place, other_place: split, set and row, as `test/all row 3`. other: folder of the dataset.
    """

    place: str
    other: Path
    other_place: str


class _Marked(NamedTuple):
    """Source puzzles of a set. marks: equal for equal puzzles, uint64; rows: int64, of the set."""

    dataset: Dataset
    split: str
    name: str
    rows: _Places
    marks: npt.NDArray[np.uint64]

    def place(self, at: int) -> str:
        return f"{self.split}/{self.name} row {self.rows[at]}"


def twins(tested: Path, trained: Iterable[Path]) -> Iterator[Twin]:
    """Yield the test puzzles of a dataset that training of others has, one twin each.

    tested: folder of a dataset. trained: of others; those of another kind have no equal puzzle,
        and what has no trace does not say its kind. Sudoku is looked for among all symmetries of
        the rules, ARC among turns, flips and colours, mazes and grids among turns and flips,
        Domino among the order of chain and hand.

    Raises BadInput for files that are missing or damaged.
    """
    own = Dataset(tested)
    tests = [*_marked(own, own, "test")]
    for folder in trained:
        other = Dataset(folder)
        if other.kind is None or other.kind != own.kind or folder.samefile(tested):
            continue
        for train in _marked(other, own, "train"):
            order = np.argsort(train.marks, kind="stable")
            for test in tests:
                at = np.searchsorted(train.marks, test.marks, sorter=order)
                at = order[np.minimum(at, len(order) - 1)] if len(order) else at[:0]
                same = np.flatnonzero(train.marks[at] == test.marks[: len(at)])
                for one in same[_is_equal(test, same, train, at[same])].tolist():
                    yield Twin(test.place(one), folder, train.place(int(at[one])))


def _marked(dataset: Dataset, asked: Dataset, split: str) -> Iterator[_Marked]:
    """The source puzzles of each set of a split, with marks as `asked` compares its own."""
    for name in dataset.metadata(split).sets if dataset.kind else ():
        arrays = dataset.arrays(split, name)
        rows = _sources(arrays)
        parts = [
            _marks(dataset, asked, arrays, rows[at : at + _TOGETHER])
            for at in range(0, len(rows), _TOGETHER)
        ]
        marks = np.concatenate([np.empty(0, np.uint64), *parts])
        yield _Marked(dataset, split, name, rows[marks != 0], marks[marks != 0])


def _sources(arrays: SetArrays) -> _Places:
    """The rows of the first puzzle of each group, which no augmentation has changed."""
    puzzles = np.asarray(arrays.group_indices[:-1])
    first, ends = (np.asarray(arrays.puzzle_indices)[puzzles + more] for more in (0, 1))
    counts = (ends - first).astype(np.int64)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found: _Places = np.repeat(first.astype(np.int64), counts) + within
    return found


def _marks(
    dataset: Dataset, asked: Dataset, arrays: SetArrays, rows: _Places
) -> npt.NDArray[np.uint64]:
    """A mark of each row, 0 for what is no puzzle: the laws name that."""
    inputs, labels = np.asarray(arrays.inputs[rows]), np.asarray(arrays.labels[rows])
    if dataset.kind == SUDOKU:
        from gristmill.puzzles.domains.sudoku_symmetry import invariants

        return invariants(_boards(inputs))
    if dataset.kind == domino_rows.KIND:
        from gristmill.puzzles.domains.domino_augment import canonical

        return canonical(inputs, str(asked.config.get("augmentation")))
    if dataset.kind == MAZE:
        from gristmill.puzzles.domains import maze_paths

        return np.array([*map(_number, maze_paths.canonical(inputs))], _U8)
    if dataset.kind == arc_grid.KIND:
        pairs = zip(inputs, labels, strict=True)
        return np.array([*starmap(_arc_mark, pairs)], _U8)
    config: dict[str, Any] = {
        name: dataset.config.get(name) for name in ("height", "width", "alphabet", "values")
    }
    is_dihedral = dataset.kind == grid.KIND and bool(asked.config["dihedral"])
    # A kind that is not known has its rows as one line of cells.
    height, width = (config["height"], config["width"]) if is_dihedral else (1, inputs.shape[1])
    symbols = repr(config).encode()
    pairs = zip(inputs, labels, strict=True)
    marks = (mark_of(pair, (int(height), int(width)), is_dihedral) for pair in pairs)
    return np.array([_number(symbols + mark) for mark in marks], _U8)


def _arc_mark(before: Integers, after: Integers) -> int:
    from gristmill.puzzles.domains.arc_kernels import canonical_pair

    try:
        pair = arc_grid.decode(before).grid, arc_grid.decode(after).grid
    except ValueError:
        return 0
    return _number(canonical_pair(*arc_grid.flat([pair]), 0).tobytes())


def _number(form: bytes) -> int:
    """A number of a form that only equal forms have, but for one in 1e19 by lot."""
    return int.from_bytes(hashlib.blake2b(form, digest_size=8).digest(), "little") or 1


def _is_equal(test: _Marked, ones: _Places, train: _Marked, others: _Places) -> npt.NDArray[Any]:
    """Whether puzzles with equal marks are equal: bool [pairs]."""
    if test.dataset.kind != SUDOKU:
        return np.ones(len(ones), np.bool_)
    from gristmill.puzzles.domains.sudoku_symmetry import canonical_forms

    forms = [
        canonical_forms(_boards(each.dataset.arrays(each.split, each.name).inputs[each.rows[at]]))
        for each, at in ((test, ones), (train, others))
    ]
    return np.asarray((forms[0] == forms[1]).all(axis=1))


def _boards(tokens: Integers) -> npt.NDArray[np.uint8]:
    """The digits of Sudokus, 0 for a blank."""
    return (np.clip(np.asarray(tokens), 1, 10) - 1).astype(np.uint8)
