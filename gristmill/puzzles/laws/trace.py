"""The trace of a dataset: every example has a source, and a group has one.

Source: docs/formats/puzzles.md#trace
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import or_unreadable
from gristmill.puzzles.domains.grid import KIND as GRID
from gristmill.puzzles.format import names
from gristmill.puzzles.read.npy_file import Integers
from gristmill.puzzles.read.rows import Dataset, SetArrays


def trace_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what is wrong with the trace of a dataset that keeps to the contract.

    dataset: or its folder, published or staged.
    """
    dataset = Dataset.of(dataset)
    return or_unreadable(_trace_laws(dataset), str(dataset.folder))


def _trace_laws(dataset: Dataset) -> Iterator[Violation]:
    files = len(dataset.sources.files)
    for split, name in dataset.sets():
        arrays = dataset.arrays(split, name)
        place = names.origins(split, name)
        if arrays.origins is None:
            yield Violation("trace", place, "is missing")
            continue
        # Rows name the groups of grids, so that a group may have several sources.
        several = dataset.kind == GRID
        for row, found in _origins(arrays, arrays.origins, files, several):
            yield Violation("trace", f"{place} row {row}", found)


def _origins(
    arrays: SetArrays, origins: Integers, files: int, several: bool
) -> Iterator[tuple[int, str]]:
    """The first row that breaks each rule, and how.

    several: whether a group may have several sources, each a puzzle of draw 0 and those after it.
    """
    file, source, draw = (np.ascontiguousarray(origins[:, column]) for column in range(3))
    least = 0 if files else -1
    rules: list[tuple[npt.NDArray[np.bool_], str]] = [
        ((file < least) | (file >= files), f"its file is not one of {files}"),
        (source < 0, "its row in the source is negative"),
        (draw < 0, "the number of its draw is negative"),
    ]
    puzzles = arrays.puzzle_indices.astype(np.int64)
    sizes = np.diff(puzzles)
    first_of_puzzle = np.repeat(puzzles[:-1], sizes)
    rules.append((draw != draw[first_of_puzzle], "its puzzle has another draw"))

    groups = arrays.group_indices.astype(np.int64)
    draws = draw[puzzles[:-1]].astype(np.int64)
    begins = np.zeros(len(draws), bool)
    begins[groups[:-1]] = True
    if several:
        begins |= draws == 0
    first_puzzle = np.maximum.accumulate(np.where(begins, np.arange(len(draws)), 0))
    first_of_group = np.repeat(puzzles[first_puzzle], sizes)
    if not several:
        rules.append((file != file[first_of_group], "its group has another file"))
    grows = np.ones(len(draws), bool)
    grows[1:] = draws[1:] > draws[:-1]
    grows[begins] = draws[begins] == 0
    wrong = "a group begins with draw 0, and each puzzle has a later one"
    rules.append((np.repeat(~grows, sizes), wrong))
    if (sizes == sizes[first_puzzle]).all():
        twin = first_of_group + (np.arange(len(file)) - first_of_puzzle)
        moved = (source != source[twin]) | (file != file[twin])
        rules.append((moved, "the first puzzle of its group has another row"))
    else:
        rules.append((np.repeat(sizes != sizes[first_puzzle], sizes), "its group has other sizes"))
    for broken, found in rules:
        if broken.any():
            yield int(broken.argmax()), found
