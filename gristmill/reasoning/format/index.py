"""Where each example is in its shards, of which raw row each record is, and which number it has.

Source: `docs/formats/reasoning.md#index`, `docs/formats/reasoning.md#origins`,
`docs/formats/reasoning.md#numbers`.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.split_file import lines
from gristmill.reasoning.format.names import TOKENIZED, TOKENS
from gristmill.reasoning.format.shards import mistyped
from gristmill.untrusted.npy_header import npy_header, read_header

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """Which examples to read.

    values: for each extra the values that are taken; an example must have one of each. Empty for
        all examples.
    """

    values: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, asked: Mapping[str, Any] | None) -> Selection:
        """The selection that an argument `select` means.

        asked: value, or several values, by name of the extra; default all examples.

        Raises GristmillError for a name that the index does not have.
        """
        values = {}
        for name, value in sorted((asked or {}).items()):
            if name not in SELECTORS:
                raise GristmillError(
                    f"select: the index has no {name!r}; it has {', '.join(SELECTORS)}; corpora"
                    " and splits are arguments of their own"
                )
            many = isinstance(value, list | tuple | set | frozenset)
            values[name] = tuple(sorted(value, key=repr)) if many else (value,)
        return cls(values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Whether an example is selected, by its row of the index."""
        extras = row.get("extras") or {}
        return all(extras.get(name) in values for name, values in self.values.items())

    def __str__(self) -> str:
        return json.dumps(self.values, ensure_ascii=False)


SELECTORS: Final = ("difficulty", "subject", "dataset", "source")
"""Columns of a corpus that the index repeats under `extras`, so that readers select by them."""

_FOLDERS: Final = re.compile(
    f"(?:^|/)(?:{TOKENIZED.partition('/')[2]}|{TOKENS.partition('/')[2]}/[^/]+)/(?=[^/]+/[^/]+/[^/]+$)"
)
"""What is before the path of a shard below the folder of all shards."""


# The keys of a line, which is an example. shard_path: the shard with its first token, below the
# data root. spans: all its tokens, the EOS included, one for each sequence. rank: that packed it.
# The key `extras`, by column of `SELECTORS`, is absent where there is none.
_TYPES: Final[Mapping[str, type]] = {
    "example_id": str,
    "shard_path": str,
    "sequence_index": int,
    "token_start": int,
    "num_tokens": int,
    "num_tokens_with_eos": int,
    "spans": list,
    "rank": int,
    "text_sha256": str,
}
_SPAN_TYPES: Final[Mapping[str, type]] = {
    "shard_path": str,
    "sequence_index": int,
    "start": int,
    "end": int,
}


def shard_path(path_prefix: str, path: str, folder: str = TOKENIZED) -> str:
    """`shard_path` of a shard as the index and the alignment have it.

    path_prefix: the first folder, of the config.
    path: POSIX path below the folder of all shards.
    folder: of all shards, below the data root.
    """
    return f"{path_prefix}/{folder.partition('/')[2]}/{path}"


def below_tokenized(path: str) -> str:
    """The POSIX path below the folder of all shards, from a `shard_path` of any prefix.

    Raises ValueError where the path does not lead through that folder.
    """
    found = _FOLDERS.search(path)
    if found is None:
        raise ValueError(f"{path!r} is not below {TOKENIZED} or {TOKENS}")
    return path[found.end() :]


def extras_text(extras: Mapping[str, Any]) -> str:
    """What follows the last key that all lines have, before the closing brace."""
    if not extras:
        return ""
    return f', "extras": {json.dumps(extras, ensure_ascii=False)}'


def extras_of(record: Mapping[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    """The extras of a normalised record: what is neither null nor empty."""
    return {name: record[name] for name in columns if record.get(name) not in (None, "", [], {})}


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of an index file as JSON objects.

    Raises BadInput with the line for one that is not of this form.
    """
    for file, number, text in lines(path):
        yield parsed(text, file, number)


def parsed(text: bytes, path: Path, number: int) -> dict[str, Any]:
    """One line as a JSON object. Raises BadInput as `objects`. number: of the line, from 1."""
    try:
        values = orjson.loads(text)
    except ValueError as error:
        raise BadInput(path, f"is no line of an index: {error}", number) from error
    if problem := _problem(values):
        raise BadInput(path, f"is no line of an index: {problem}", number)
    found: dict[str, Any] = values
    return found


def _problem(values: Any) -> str | None:
    """Why an object is no row, None where it is one."""
    if problem := mistyped(values, _TYPES, optional="extras"):
        return problem
    if not isinstance(values.get("extras", {}), dict):
        return "extras: must be an object"
    if not values["spans"]:
        return "spans: must not be empty"
    for span in values["spans"]:
        if problem := mistyped(span, _SPAN_TYPES):
            return f"spans: {problem}"
    return None


class OriginsWriter:
    """Writes the origins of a split, an .npy file, whose header is written at the end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._file.write(npy_header("<i8", (0, 2)))
        self._records = 0

    def write(self, places: npt.ArrayLike) -> None:
        """Append origins: number of the file from 0 and row from 1, in turn."""
        data = np.asarray(places, "<i8").tobytes()
        self._file.write(data)
        self._records += len(data) // 16

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._file.write(npy_header("<i8", (self._records, 2)))


def mapped(path: Path, columns: tuple[int, ...] = (2,)) -> npt.NDArray[np.int64]:
    """The origins of a split, int64 [records, 2], mapped into memory.

    path: of the .npy file. Column 0: number of the file in the sorted list of the split's raw
        files, from 0; column 1: row in it, from 1.
    columns: the shape of a record; default: that of origins.

    Raises BadInput where the file is missing, damaged, or of another type or shape.
    """
    try:
        with path.open("rb") as file:
            shape, fortran, dtype = read_header(file)
            offset, size = file.tell(), os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error}): build the partition again") from error
    if dtype != np.dtype("<i8") or fortran or not shape or shape[1:] != columns:
        expected = ", ".join(map(str, ("records", *columns)))
        raise BadInput(path, f"{dtype} {list(shape)}, expected int64 [{expected}]")
    if size != (expects := offset + 8 * math.prod(shape)):
        rule = f"has {size} bytes, its header says {expects}"
        raise BadInput(path, f"{rule}: build the partition again")
    if shape[0] == 0:
        return np.empty(shape, np.int64)  # nothing cannot be mapped
    return np.memmap(path, np.int64, "r", offset, shape)


def numbers_path(jsonl: Path) -> Path:
    """The file of the numbers of a normalised file, which is there where they have gaps."""
    return jsonl.with_suffix(".numbers.npy")


def free_numbers(taken: Collection[int], records: int) -> Ints:
    """The first numbers from 0, int64 [records], without those that are taken."""
    left = np.ones(records + len(taken), bool)
    left[[number for number in taken if number < len(left)]] = False
    return np.flatnonzero(left)[:records]


def write_numbers(jsonl: Path, taken: Collection[int], records: int) -> bool:
    """Write the numbers of a normalised file where they have gaps; returns whether they have."""
    numbers = free_numbers(taken, records)
    if not records or numbers[-1] == records - 1:
        return False
    numbers_path(jsonl).write_bytes(
        npy_header("<i8", numbers.shape) + numbers.astype("<i8").tobytes()
    )
    return True


class Numbers:
    """The numbers of the records of a normalised file; a place counts the records before.

    jsonl: the file. Its numbers are mapped into memory. Raises BadInput where they are damaged.
    """

    def __init__(self, jsonl: Path) -> None:
        path = numbers_path(jsonl)
        self._path = path
        self._gaps: Ints | None = mapped(path, ()) if path.exists() else None

    def of(self, place: int) -> int:
        """The number of a record; behind the last one they have no gaps."""
        if self._gaps is None:
            return place
        count = len(self._gaps)
        return int(self._gaps[place] if place < count else self._gaps[-1] + 1 + place - count)

    def place(self, number: int) -> int | None:
        """The place of a record; None for a number that a forgotten row had."""
        if self._gaps is None:
            return number
        place = int(np.searchsorted(self._gaps, number))
        return place if self.of(place) == number else None

    def between(self, first: int, stop: int) -> Ints:
        """The numbers of consecutive records, int64 [stop - first]. first, stop: places."""
        return np.arange(first, stop) if self._gaps is None else self._gaps[first:stop]

    def check(self, records: int) -> None:
        """Raise BadInput unless there are so many numbers as records."""
        if self._gaps is not None and len(self._gaps) != records:
            rule = f"has {len(self._gaps)} numbers of {records} records: build the partition again"
            raise BadInput(self._path, rule)
