"""Lines about files, for `gristmill verify` of a folder without a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

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
