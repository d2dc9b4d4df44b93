"""The base of the readers: a dataset that belongs to one generation, in every process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.reading.folder import Generation, Generations, Opening, Verify, opened, verify_level

Held = TypeVar("Held")


class Reader(Generic[Held]):
    """Opens files of published artifacts, and opens the same generation again after a pickle.

    A subclass implements `open_files` and calls `start`. What `open_files` returns is not pickled:
    a worker of a data loader opens the folders again by path at its first read. StaleDataset is
    raised there, and not while the pickle is loaded, because torch reports only the first of
    these to the training process.

    verify: how much is compared with the records.
    """

    verify: Verify
    _held: Held | None
    _generations: Generations

    def open_files(self, opening: Opening) -> Held:
        """Open all files and return what is kept of them, such as maps.

        opening: opens folders. If it is the first, contents are checked too.
        """
        raise NotImplementedError

    def start(self, verify: Verify | bool) -> None:
        """Open the files for the first time.

        verify: how much is compared with the records.

        Raises ValueError for another level, else as `opened`.
        """
        self.verify = verify_level(verify)
        self._held, self._generations = opened(self.open_files, self.verify)

    @property
    def held(self) -> Held:
        """What `open_files` returned in this process.

        Raises StaleDataset where another generation is published now.
        """
        if self._held is None:
            held, _ = opened(self.open_files, self.verify, self._generations)
            self._held = held
            return held
        return self._held

    @property
    def generations(self) -> tuple[Generation, ...]:
        """The generation of each artifact that is read, in the order of opening."""
        return tuple(self._generations.values())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}


_DIGITS: Final = 8
_DRAWN: Final = 1000


def stream_of(generator: Any) -> dict[str, str]:
    """What a state says of its stream: `stream`, eight digits, and `numpy`, the version.

    generator: a new `np.random.Generator` of the kind and the seed of the order; it is drawn from.

    The digits are of a permutation, and of integers in ranges of many widths.
    """
    widths = np.append(np.arange(_DRAWN), 1 << np.arange(62)) + 1
    drawn = generator.permutation(_DRAWN), generator.integers(0, widths, dtype=np.int64)
    digest = hashlib.sha256(np.concatenate(drawn).astype("<i8").tobytes())
    return {"stream": digest.hexdigest()[:_DIGITS], "numpy": np.__version__}


def refuse_other_stream(state: Mapping[str, Any], generator: Any) -> None:
    """Raise GristmillError where a state was written with another stream than is drawn here.

    state: with what `stream_of` returned; one of an earlier version has nothing, and is taken.
    """
    here = stream_of(generator)
    found = state.get("stream", here["stream"])
    if found != here["stream"]:
        raise GristmillError(
            f"the state is of another random stream: its digits are {found!r:.20}, drawn by NumPy"
            f" {state.get('numpy')!r:.20}; here NumPy {here['numpy']!r} draws {here['stream']!r}:"
            " continue with the NumPy that wrote it, or begin a new pass"
        )


_MARKS = ("mirror://", "mirror+")
_COLLAPSED = ("mirror:/", "mirror+")


def located(address: Path | str) -> Path:
    """The local folder that an address names, once it is there.

    address: a path; or as text `mirror://NAME[@PARTITION][#DATA_VERSION][//INSIDE]`, or
        `mirror+URL!NAME...`. Such a version is fetched into the cache, unless it is there.

    Any other address is returned as an absolute path, so that a pickle of the reader leads to the
    same folder in a process with another working directory. Raises MirrorError as
    `gristmill.mirror.transfers.fetched`, BadInput for a Path that was made of an address.
    """
    text = os.fspath(address)
    if isinstance(address, str) and text.startswith(_MARKS):
        folder: Path = import_module("gristmill.mirror.transfers").fetched(text)
        return folder
    if not isinstance(address, str) and text.startswith(_COLLAPSED):
        raise BadInput(text, "is an address in a mirror: give it as text, since a Path changes it")
    return Path(address).absolute()


def lines_from(file: BinaryIO, key: Callable[[bytes], Any], wanted: Any) -> Iterator[bytes]:
    """Yield the lines of a file from the first on whose key is `wanted` or more.

    file: opened for reading bytes. key: gives the key of a line; what it raises is raised.
    Where the keys do not ascend, the first line that is given is any: look whether it is the one.
    """
    # No line that begins before `low` is wanted; one that begins first behind `high` is.
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        file.seek(max(middle - 1, 0))
        if middle:
            file.readline()
        begin = file.tell()
        if begin < high and key(line := file.readline()) < wanted:
            low = begin + len(line)
        else:
            high = middle
    file.seek(low)
    yield from file


_BATCH_BYTES: Final = 8 << 20


class Ranges:
    """The least and the largest number in each column of many arrays.

    Arrays that are mapped are read once, a few megabytes at a time.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[np.dtype[Any], Any, Any]] = {}

    def add(self, array: npt.NDArray[Any], name: str = "") -> None:
        """Look at an array.

        array: of numbers, of any shape; or rows [N] with named columns.
        name: of its numbers; default: none. Columns have names of their own.
        """
        step = max(1, _BATCH_BYTES // max(1, array[:1].nbytes))
        for at in range(0, len(array), step):
            batch = np.asarray(array[at : at + step])
            for column in batch.dtype.names or (name,):
                values = batch[column] if batch.dtype.names else batch
                if values.size:
                    self._widen(column, values.dtype, values.min(), values.max())

    def _widen(self, name: str, dtype: np.dtype[Any], least: Any, most: Any) -> None:
        _, before, after = self._found.get(name, (dtype, least, most))
        self._found[name] = dtype, np.minimum(before, least), np.maximum(after, most)

    def lines(self) -> Iterator[str]:
        """Yield `name: type, least to largest` for each column; none for arrays without numbers."""
        for name, (dtype, least, most) in self._found.items():
            yield f"{name}: {dtype}, {number(least)} to {number(most)}"


def number(value: Any) -> str:
    """A number with commas between thousands; a float with six digits."""
    return f"{value:,}" if np.issubdtype(type(value), np.integer) else f"{value:.6g}"


def counted(count: int, thing: str) -> str:
    """A number and what is counted, as `1 row` or `1,000 rows`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def array_fact(name: str, array: npt.NDArray[Any]) -> str:
    """One line about an array of numbers: type, shape and range."""
    ranges = Ranges()
    ranges.add(array)
    shape = ", ".join(f"{size:,}" for size in array.shape)
    for line in ranges.lines():
        return f"{name}: {array.dtype} [{shape}], {line.partition(', ')[2]}"
    return f"{name}: {array.dtype} [{shape}]"


def file_facts(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the number of lines and bytes of text files.

    folder: where they are. names: their paths in it; those that are not there are passed over.
    """
    for name in names:
        if not (folder / name).is_file():
            continue
        lines = size = 0
        with (folder / name).open("rb") as file:
            while data := file.read(_BATCH_BYTES):
                lines, size = lines + data.count(b"\n"), size + len(data)
        yield f"{name}: {counted(lines, 'line')}, {counted(size, 'byte')}"
