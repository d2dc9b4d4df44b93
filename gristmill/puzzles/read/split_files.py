"""The files of one split as training reads them: opened in one generation, checked, mapped."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata, read_metadata
from gristmill.reading.folder import OpenFolder
from gristmill.untrusted.npy_header import read_header

Integers = npt.NDArray[np.integer[Any]]


def mapped_integers(opened: Path, path: Path, dimensions: int) -> Integers:
    """Map an array of integers; it cannot be written to."""
    with opened.open("rb") as file:
        try:
            shape, fortran, dtype = read_header(file)
        except ValueError as error:
            raise BadInput(path, f"has no npy header that can be read ({error}): {_REMEDY}") from (
                error
            )
        offset, size = file.tell(), os.fstat(file.fileno()).st_size
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if dtype.kind not in "iu" or len(shape) != dimensions or (fortran and dimensions > 1):
        order = "Fortran" if fortran else "C"
        raise BadInput(
            path,
            f"holds {dtype} {shape} in {order} order, expected integers in {dimensions}"
            f" dimensions in C order: {_REMEDY}",
        )
    count = 1
    for length in shape:
        count *= int(length)
    if size != offset + count * dtype.itemsize:
        raise BadInput(
            path,
            f"has {size} bytes, its header says {offset + count * dtype.itemsize}: {_REMEDY}",
        )
    if count == 0:
        return np.empty(shape, dtype)  # nothing cannot be mapped
    # Slices of it cost less than those of a memmap, and so does making it.
    return np.frombuffer(mapped, dtype, count, offset).reshape(shape)


_REMEDY = "build the dataset again, or copy it again"
_CHECKED_AT_ONCE: Final = 1 << 20
_COMPILED: Final = (np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int64))
"""Types that the kernels read where they are mapped."""


@dataclass(frozen=True)
class MappedSet:
    """One set of a split.

    puzzle_indices, group_indices: int32 or int64, [P + 1] and [G + 1], mapped.
    """

    name: str
    inputs: Integers
    labels: Integers
    puzzle_identifiers: Integers
    puzzle_indices: Integers
    group_indices: Integers
    paths: dict[str, Path]

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.inputs)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.group_indices) - 1


@dataclass(frozen=True)
class MappedSplit:
    """One split of a dataset: the metadata, and the sets in its order."""

    metadata: PuzzleDatasetMetadata
    sets: tuple[MappedSet, ...]


def open_split(folder: OpenFolder, split: str, check: bool = True) -> MappedSplit:
    """Open the files of a split.

    check: look at all numbers of the index arrays, too; default True.

    Raises BadInput, naming the file and the rule, for a file that is missing or damaged.
    """
    name = names.metadata(split)
    try:
        metadata = read_metadata(folder.file(name))
    except BadInput as error:
        raise BadInput(folder.path / name, f"{error.rule}: {_REMEDY}") from error
    return MappedSplit(
        metadata, tuple(_open_set(folder, split, each, metadata, check) for each in metadata.sets)
    )


def _open_set(
    folder: OpenFolder, split: str, name: str, metadata: PuzzleDatasetMetadata, check: bool
) -> MappedSet:
    arrays, paths = {}, {}
    for field in names.FIELDS:
        file = names.array(split, name, field)
        paths[field] = folder.path / file
        dimensions = 2 if field in names.TOKENS else 1
        arrays[field] = mapped_integers(folder.file(file), paths[field], dimensions)
    for field in ("puzzle_indices", "group_indices"):
        array = arrays[field]
        if array.dtype not in _COMPILED[1:]:
            arrays[field] = array.astype(np.int64)
    made = MappedSet(name, **arrays, paths=paths)
    _check_shapes(made, metadata)
    if check:
        _check_indices(made, "puzzle_indices", made.examples, "examples")
        _check_indices(made, "group_indices", len(made.puzzle_identifiers), "puzzles")
        _check_identifiers(made, metadata)
    return made


def _check_shapes(made: MappedSet, metadata: PuzzleDatasetMetadata) -> None:
    shape = (made.examples, metadata.seq_len)
    for field in names.TOKENS:
        if (array := getattr(made, field)).shape != shape:
            _refuse(made, field, f"has the shape {array.shape}, expected {shape}")
    puzzles = len(made.puzzle_identifiers)
    if len(made.puzzle_indices) != puzzles + 1:
        found = f"has {len(made.puzzle_indices)} entries for {puzzles} puzzles, expected one more"
        _refuse(made, "puzzle_indices", found)
    if len(made.group_indices) < 1:
        _refuse(made, "group_indices", "has no entries, expected one more than groups")


def _check_indices(made: MappedSet, field: str, end: int, noun: str) -> None:
    """An index array begins at 0, grows at every entry, and ends at the number of `noun`."""
    array: Integers = getattr(made, field)
    if array[0] != 0 or array[-1] != end:
        found = f"goes from {array[0]} to {array[-1]}, expected 0 to {end}, the number of {noun}"
        _refuse(made, field, found)
    for first in range(0, len(array) - 1, _CHECKED_AT_ONCE):
        part = array[first : first + _CHECKED_AT_ONCE + 1]
        if (fallen := part[1:] <= part[:-1]).any():
            place = first + int(fallen.argmax())
            found = f"entry {place + 1} is not greater than entry {place}, counted from 0"
            _refuse(made, field, f"{found}: a puzzle or a group would be empty")


def _check_identifiers(made: MappedSet, metadata: PuzzleDatasetMetadata) -> None:
    most = metadata.num_puzzle_identifiers - 1
    for first in range(0, len(made.puzzle_identifiers), _CHECKED_AT_ONCE):
        part = made.puzzle_identifiers[first : first + _CHECKED_AT_ONCE]
        if int(part.min()) < 0 or int(part.max()) > most:
            place = first + int(((part < 0) | (part > most)).argmax())
            found = f"puzzle {place} has the identifier {made.puzzle_identifiers[place]}"
            _refuse(made, "puzzle_identifiers", f"{found}, expected 0 to {most}")


def _refuse(made: MappedSet, field: str, found: str) -> None:
    raise BadInput(made.paths[field], f"{found}: {_REMEDY}")


def compiled_rows(
    tokens: Integers, rows: npt.NDArray[np.int64]
) -> tuple[Integers, npt.NDArray[np.int64]]:
    """Tokens of a type that the kernels know, and where the rows are in them.

    tokens: mapped integers [N, seq_len]. rows: int64 [n].
    """
    if tokens.dtype in _COMPILED:
        return tokens, rows
    return tokens[rows].astype(np.int64), np.arange(len(rows))
