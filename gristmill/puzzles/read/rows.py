"""A dataset as laws, pictures and traces read it: arrays of a set, and its rows in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import numpy as np

from gristmill.contract import BadInput, GristmillError, os_reason
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import (
    PuzzleDatasetMetadata,
    Sources,
    read_identifiers,
    read_metadata,
    read_sources,
)
from gristmill.puzzles.format.names import IDENTIFIERS, SPLITS, metadata
from gristmill.puzzles.raw.recipes import CONFIGS
from gristmill.puzzles.read.split_files import Integers, mapped_integers
from gristmill.run.workers import threaded_map

Found = TypeVar("Found")

_BATCH_BYTES = 2 << 20
"""Of a batch: in more, new memory costs page faults; in less, threads wait for each other."""


def open_array(path: Path, dimensions: int) -> Integers:
    """Map an array of integers."""
    try:
        return mapped_integers(path, path, dimensions)
    except FileNotFoundError as error:
        raise BadInput(path, "is missing") from error
    except OSError as error:
        raise BadInput(path, f"cannot be read: {os_reason(error)}") from error


@dataclass(frozen=True)
class SetArrays:
    """The arrays of one set, mapped.

    origins: int32 [examples, 3], None where the dataset has no trace.
    """

    inputs: Integers
    labels: Integers
    puzzle_identifiers: Integers
    puzzle_indices: Integers
    group_indices: Integers
    origins: Integers | None


@dataclass(frozen=True)
class Rows:
    """Rows of a set, one after another."""

    first: int
    inputs: Integers
    labels: Integers


class Dataset:
    """A dataset that need not have a provenance record.

    workers: threads of `each`; default 1, which is none beside the caller's.

    Errors are BadInput and name the file.
    """

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.folder, self.workers = folder, workers
        self._arrays: dict[tuple[str, str], SetArrays] = {}
        self._metadata: dict[str, PuzzleDatasetMetadata] = {}

    @classmethod
    def of(cls, place: Dataset | Path) -> Dataset:
        """The dataset itself, or that of a folder."""
        return place if isinstance(place, Dataset) else cls(place)

    @cached_property
    def sources(self) -> Sources:
        """Kind, config and files of the dataset; raises BadInput where it has no trace."""
        return read_sources(self.folder / names.SOURCES)

    @cached_property
    def kind(self) -> str | None:
        """The kind of puzzle, None where the dataset has no trace."""
        return self.sources.kind if (self.folder / names.SOURCES).is_file() else None

    @property
    def config(self) -> Mapping[str, Any]:
        """The config of the builder, empty where the dataset has no trace."""
        return {} if self.kind is None else self.sources.config

    @cached_property
    def identifiers(self) -> list[str]:
        """The names in `identifiers.json`."""
        return read_identifiers(self.folder / names.IDENTIFIERS)

    def metadata(self, split: str) -> PuzzleDatasetMetadata:
        """The metadata of a split."""
        if split not in self._metadata:
            self._metadata[split] = self._read_metadata(split)
        return self._metadata[split]

    def _read_metadata(self, split: str) -> PuzzleDatasetMetadata:
        path = self.folder / names.metadata(split)
        try:
            return read_metadata(path)
        except FileNotFoundError as error:
            raise BadInput(path, "is missing") from error

    def sets(self) -> Iterator[tuple[str, str]]:
        """Split and set of each set, the training split first."""
        for split in names.SPLITS:
            for name in self.metadata(split).sets:
                yield split, name

    def arrays(self, split: str, set_name: str) -> SetArrays:
        """The arrays of a set. Raises BadInput where their shapes do not fit together."""
        key = split, set_name
        if key not in self._arrays:
            self._arrays[key] = self._mapped(split, set_name)
        return self._arrays[key]

    def _mapped(self, split: str, set_name: str) -> SetArrays:
        paths = {field: self.folder / names.array(split, set_name, field) for field in names.FIELDS}
        found = {
            field: open_array(path, 2 if field in names.TOKENS else 1)
            for field, path in paths.items()
        }
        origins_path = self.folder / names.origins(split, set_name)
        origins = open_array(origins_path, 2) if origins_path.exists() else None
        if found["inputs"].shape != found["labels"].shape:
            raise BadInput(paths["labels"], "has another shape than the inputs")
        if len(found["puzzle_indices"]) != len(found["puzzle_identifiers"]) + 1:
            raise BadInput(paths["puzzle_indices"], "must have one entry more than identifiers")
        if origins is not None and origins.shape != (len(found["inputs"]), 3):
            raise BadInput(origins_path, "must have three columns, and a row for each example")
        return SetArrays(**found, origins=origins)

    def rows(self, split: str, set_name: str, rows: int | None = None) -> Iterator[Rows]:
        """The rows of a set in batches, read from the files rather than mapped.

        rows: of a batch; default: some 2 MB of inputs.
        """
        with self._files(split, set_name) as (inputs, labels):
            for first, last in self._bounds(split, set_name, rows):
                yield Rows(first, inputs.read(first, last), labels.read(first, last))

    def each(
        self,
        split: str,
        set_name: str,
        look: Callable[[Rows], Found],
        rows: int | None = None,
    ) -> Generator[Found]:
        """What `look` returns for each batch of rows, in order; `workers` threads call it.

        rows: of a batch; default as for `rows`. They are valid until `look` returns.
        """
        # Memory that is used once more, since new memory costs page faults.
        unused: list[list[Integers]] = []
        with self._files(split, set_name) as files:

            def looked(bounds: tuple[int, int]) -> Found:
                try:
                    memory = unused.pop()
                except IndexError:
                    memory = [file.memory(*bounds) for file in files]
                inputs, labels = (
                    file.read(*bounds, into) for file, into in zip(files, memory, strict=True)
                )
                found = look(Rows(bounds[0], inputs, labels))
                unused.append(memory)
                return found

            yield from threaded_map(looked, self._bounds(split, set_name, rows), self.workers)

    def _bounds(self, split: str, set_name: str, rows: int | None) -> Iterator[tuple[int, int]]:
        """The first row of each batch, and the one behind its last."""
        inputs = self.arrays(split, set_name).inputs
        count, width = inputs.shape
        step = rows or max(1, _BATCH_BYTES // max(1, width * inputs.itemsize))
        return ((first, min(count, first + step)) for first in range(0, count, step))

    @contextmanager
    def _files(self, split: str, set_name: str) -> Iterator[list[_TokenFile]]:
        arrays = self.arrays(split, set_name)
        with ExitStack() as stack:
            yield [
                stack.enter_context(
                    _TokenFile(self.folder / names.array(split, set_name, field), array)
                )
                for field, array in zip(names.TOKENS, (arrays.inputs, arrays.labels), strict=True)
            ]


class _TokenFile:
    """The file of an array, whose rows several threads may read."""

    def __init__(self, path: Path, array: Integers) -> None:
        self._path, self._file = path, path.open("rb", buffering=0)
        self._width, self._dtype = array.shape[1], array.dtype
        self._start = os.fstat(self._file.fileno()).st_size - array.nbytes

    def memory(self, first: int, last: int) -> Integers:
        """An array for the rows from `first` to `last`, without the last one."""
        return np.empty((last - first, self._width), self._dtype)

    def read(self, first: int, last: int, into: Integers | None = None) -> Integers:
        """The rows from `first` to `last`, without the last one."""
        rows = (self.memory(first, last) if into is None else into)[: last - first]
        place = self._start + first * self._width * self._dtype.itemsize
        left = memoryview(rows.reshape(-1).view(np.uint8).data)
        while left:
            count = os.preadv(self._file.fileno(), [left], place)
            if not count:
                raise BadInput(self._path, "became shorter while it was read: build it again")
            left, place = left[count:], place + count
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


_KIND_OF_SHAPE: Final = {(12, 900): "arc", (11, 81): "sudoku", (6, 900): "maze", (8, 72): "domino"}
"""The kind of a dataset without a trace, by vocab_size and seq_len."""


def asset_of(folder: Path) -> str | None:
    """The key of the kind of a folder, `puzzles/other` for another puzzle; None for no dataset.

    folder: any path; it need not exist.
    """
    if not all((folder / name).is_file() for name in (IDENTIFIERS, *map(metadata, SPLITS))):
        return None
    try:
        data = Dataset(folder)
        shape = data.metadata("train").vocab_size, data.metadata("train").seq_len
        kind = data.kind or _KIND_OF_SHAPE.get(shape)
    except GristmillError:
        return None
    return f"puzzles/{kind if kind in CONFIGS else 'other'}"
