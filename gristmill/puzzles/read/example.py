"""One example of a dataset: its tokens, its puzzle and group, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import SourceFile
from gristmill.puzzles.read.rows import Dataset, SetArrays


@dataclass(frozen=True)
class Example:
    """One example.

    group, puzzle: their numbers in the set, from 0. number: in its puzzle, from 0.
    inputs, labels: int64 [seq_len].
    file: that it came from; None for a generated one, or a dataset without a trace.
    source_row: row in that file, pair of the task, or number of the game; None without a trace.
    draw: number of its augmentation, 0 for the source itself; None without a trace.
    """

    split: str
    set_name: str
    row: int
    group: int
    puzzle: int
    number: int
    first: int
    identifier: str
    identifier_id: int
    inputs: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    file: SourceFile | None = None
    source_row: int | None = None
    draw: int | None = None


def example(
    data: Dataset, split: str, set_name: str, row: int, arrays: SetArrays | None = None
) -> Example:
    """Read an example.

    data: the dataset. split, set_name: of the set. row: of the example in the set, from 0.
    arrays: of the set, where they are open already; default None.

    Raises BadInput where there is no such split, set or row, or a file is damaged.
    """
    check_set(data, split, set_name)
    held = arrays or data.arrays(split, set_name)
    path = data.folder / names.array(split, set_name, "inputs")
    count = len(held.inputs)
    if not 0 <= row < count:
        rule = f"has {count:,} examples, no example {row:,}; they count from 0"
        raise BadInput(path, rule)
    puzzle = _owner(held.puzzle_indices, row)
    group = _owner(held.group_indices, puzzle)
    in_range = 0 <= puzzle < len(held.puzzle_identifiers) and 0 <= group < len(held.group_indices)
    first_puzzle = int(held.group_indices[group]) if in_range else -1
    if not 0 <= first_puzzle <= puzzle:
        rule = f"example {row} belongs to no puzzle or to no group: the index arrays are damaged"
        raise BadInput(path, rule)
    identifier = int(held.puzzle_identifiers[puzzle])
    found = Example(
        split=split,
        set_name=set_name,
        row=row,
        group=group,
        puzzle=puzzle,
        number=row - int(held.puzzle_indices[puzzle]),
        first=min(max(int(held.puzzle_indices[first_puzzle]), 0), count - 1),
        identifier=_name(data, identifier),
        identifier_id=identifier,
        inputs=held.inputs[row].astype(np.int64),
        labels=held.labels[row].astype(np.int64),
    )
    return found if held.origins is None else _with_origin(data, found, held.origins[row].tolist())


def check_set(data: Dataset, split: str, set_name: str) -> None:
    """Raise BadInput where a dataset has no such split or set; the text names those it has."""
    if split not in names.SPLITS:
        raise BadInput(data.folder, f"has no split {split!r}: it is train or test")
    sets = data.metadata(split).sets
    if set_name not in sets:
        rule = f"has no set {set_name!r} in {split}: it has {', '.join(sets)}"
        raise BadInput(data.folder, rule)


def _with_origin(data: Dataset, found: Example, origin: list[int]) -> Example:
    file, source_row, draw = origin
    files = data.sources.files
    if not -1 <= file < len(files):
        path = data.folder / names.origins(found.split, found.set_name)
        raise BadInput(path, f"names file {file} of {len(files)} in {names.SOURCES}", found.row)
    values = {**vars(found), "source_row": source_row, "draw": draw}
    return Example(**{**values, "file": files[file] if file >= 0 else None})


def _owner(indices: npt.NDArray[np.integer], item: int) -> int:
    return int(np.searchsorted(indices, item, side="right")) - 1


def _name(data: Dataset, identifier: int) -> str:
    listed = data.identifiers
    if not 0 <= identifier < len(listed):
        path = data.folder / names.IDENTIFIERS
        raise BadInput(path, f"has {len(listed)} names, none for identifier {identifier}")
    return listed[identifier]
