"""The files of a dataset, mapped and checked: arrays of a set, rows in batches, and tables.

Laws, pictures and traces take arrays and rows, exports take tables. `open_split` opens the files of
one split in one generation, for training.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError, os_reason
from gristmill.hashing import kept
from gristmill.puzzles import format as names
from gristmill.puzzles.format import IDENTIFIERS, SPLITS, array, metadata
from gristmill.puzzles.format.dataset import (
    PuzzleDatasetMetadata,
    Sources,
    read_identifiers,
    read_metadata,
    read_sources,
)
from gristmill.reading.folder import OpenFolder
from gristmill.untrusted.npy_header import read_header

if TYPE_CHECKING:
    import pyarrow as pa

    from gristmill.exports.table import Batches, Split

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
            path, f"has {size} bytes, its header says {offset + count * dtype.itemsize}: {_REMEDY}"
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
class SetArrays:
    """The arrays of one set, mapped. origins: int32 [n, 3]; None without trace or in training."""

    inputs: Integers
    labels: Integers
    puzzle_identifiers: Integers
    puzzle_indices: Integers
    group_indices: Integers
    origins: Integers | None = None


@dataclass(frozen=True, kw_only=True)
class MappedSet(SetArrays):
    """One set of a split. puzzle_indices, group_indices: int32 or int64."""

    name: str
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
    """Open a split's files. Raises BadInput, naming the file, where one is missing or damaged."""
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
    made = MappedSet(**arrays, name=name, paths=paths)
    _check_shapes(made, metadata)
    for _, field, found in index_faults(made, metadata) if check else ():
        _refuse(made, field, found)
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


def index_faults(
    arrays: SetArrays, metadata: PuzzleDatasetMetadata
) -> Iterator[tuple[str, str, str]]:
    """The law, the array, and what is wrong with the numbers of the index arrays of a set."""
    for field, end, noun in (
        ("puzzle_indices", len(arrays.inputs), "examples"),
        ("group_indices", len(arrays.puzzle_identifiers), "puzzles"),
    ):
        index: Integers = getattr(arrays, field)
        if not len(index) or index[0] != 0 or index[-1] != end:
            held = f"goes from {index[0]} to {index[-1]}" if len(index) else "has no entries"
            yield "indices", field, f"{held}, expected 0 to {end}, the number of {noun}"
            continue
        for first in range(0, len(index) - 1, _CHECKED_AT_ONCE):
            part = index[first : first + _CHECKED_AT_ONCE + 1]
            if (fallen := part[1:] <= part[:-1]).any():
                at = first + int(fallen.argmax())
                found = f"entry {at + 1} is not greater than entry {at}, counted from 0"
                yield "indices", field, f"{found}: a puzzle or a group would be empty"
                break
    most = metadata.num_puzzle_identifiers - 1
    for first in range(0, len(arrays.puzzle_identifiers), _CHECKED_AT_ONCE):
        part = arrays.puzzle_identifiers[first : first + _CHECKED_AT_ONCE]
        if int(part.min()) < 0 or int(part.max()) > most:
            at = first + int(((part < 0) | (part > most)).argmax())
            found = f"puzzle {at} has the identifier {arrays.puzzle_identifiers[at]}"
            yield "identifiers", "puzzle_identifiers", f"{found}, expected 0 to {most}"
            break


def _refuse(made: MappedSet, field: str, found: str) -> None:
    raise BadInput(made.paths[field], f"{found}: {_REMEDY}")


def compiled_rows(
    tokens: Integers, rows: npt.NDArray[np.int64]
) -> tuple[Integers, npt.NDArray[np.int64]]:
    """Tokens of a type that the kernels know, and where rows, int64 [n], are in them."""
    if tokens.dtype in _COMPILED:
        return tokens, rows
    return tokens[rows].astype(np.int64), np.arange(len(rows))


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
class Rows:
    """Rows of a set, one after another."""

    first: int
    inputs: Integers
    labels: Integers


class Dataset:
    """A dataset, also one without a record, for `workers` threads; errors are BadInput."""

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
        return kept(read_sources, self.folder / names.SOURCES)

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
        return kept(read_identifiers, self.folder / names.IDENTIFIERS)

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
        """The rows of a set in batches, by default of some 2 MB, read rather than mapped."""
        with self._files(split, set_name) as (inputs, labels):
            for first, last in self._bounds(split, set_name, rows):
                yield Rows(first, inputs.read(first, last), labels.read(first, last))

    def each(
        self, split: str, set_name: str, look: Callable[[Rows], Found], rows: int | None = None
    ) -> Generator[Found]:
        """What `look` returns for each batch, in order, by threads; rows are valid until then."""
        from gristmill.run.workers import threaded_map

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
    """The key of the kind of a folder, `puzzles/other` for others; None for no dataset."""
    from gristmill.puzzles.config import CONFIGS

    if not all((folder / name).is_file() for name in (IDENTIFIERS, *map(metadata, SPLITS))):
        return None
    try:
        data = Dataset(folder)
        shape = data.metadata("train").vocab_size, data.metadata("train").seq_len
        kind = data.kind or _KIND_OF_SHAPE.get(shape)
    except GristmillError:
        return None
    return f"puzzles/{kind if kind in CONFIGS else 'other'}"


_EXPORTED_BYTES: Final = 16 << 20


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the sets of both splits. asset: its key. folder: of the dataset."""
    data = Dataset(folder)
    sets = list(data.sets())
    several = len({name for _, name in sets}) > 1
    for split, name in sets:
        yield _exported(data, split, name, name if several else "")


def _exported(data: Dataset, split: str, name: str, table: str) -> Split:
    import pyarrow as pa

    from gristmill.exports.table import Split, list_of, required

    facts = data.metadata(split)
    kind = pa.uint8() if facts.vocab_size <= 256 else pa.int32()
    tokens = list_of(kind, facts.seq_len)
    number = pa.int32()
    schema = required(
        {
            "inputs": tokens,
            "labels": tokens,
            "puzzle_identifier": number,
            "puzzle_name": pa.string(),
            "puzzle_index": number,
            "group_index": number,
        }
    )

    def batches() -> Batches:
        arrays, names = data.arrays(split, name), pa.array(data.identifiers)
        for rows in data.rows(split, name, max(1, _EXPORTED_BYTES // (2 * facts.seq_len))):
            at = np.arange(rows.first, rows.first + len(rows.inputs))
            puzzle = np.searchsorted(arrays.puzzle_indices, at, side="right") - 1
            group = np.searchsorted(arrays.group_indices, puzzle, side="right") - 1
            identifier = np.asarray(arrays.puzzle_identifiers)[puzzle].astype(np.int32)
            if len(at) and not 0 <= identifier.min() <= identifier.max() < len(names):
                path = data.folder / array(split, name, "puzzle_identifiers")
                raise BadInput(path, "has an identifier without a name: build it again")
            columns = [
                *(_listed(each, tokens) for each in (rows.inputs, rows.labels)),
                pa.array(identifier),
                names.take(pa.array(identifier)),
                pa.array(puzzle.astype(np.int32)),
                pa.array(group.astype(np.int32)),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return Split(split, lambda: schema, batches, table)


def _listed(rows: Any, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    dtype = kind.value_type.to_pandas_dtype()
    flat = np.ascontiguousarray(rows).reshape(-1).astype(dtype, copy=False)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), type=kind)
