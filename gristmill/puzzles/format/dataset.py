"""The files of a dataset: what it says of itself, in JSON, and its arrays, from batches and parts.

The examples of a set are known before its first file is written, so every file is written once,
from its beginning to its end, and hashed meanwhile. Source: docs/formats/puzzles.md#contract.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote
from gristmill.hashing import HashedFile
from gristmill.puzzles.format import is_set_name
from gristmill.run.parts import SHA256
from gristmill.untrusted.npy_header import npy_header


@dataclass(frozen=True)
class Encoding:
    """The numbers that all examples of a dataset share.

    pad_id: the token of padding; default 0.
    ignore_label_id: the label that has no loss; None: every label has one. Default 0.
    blank_identifier_id: the identifier of puzzles without one; default 0.

    Raises ValueError for numbers that exclude each other.
    """

    seq_len: int
    vocab_size: int
    pad_id: int = 0
    ignore_label_id: int | None = 0
    blank_identifier_id: int = 0

    def __post_init__(self) -> None:
        if self.seq_len < 1 or self.vocab_size < 1:
            raise ValueError("seq_len and vocab_size must be at least 1")
        if not 0 <= self.pad_id < self.vocab_size:
            raise ValueError("pad_id must be a token: 0 to vocab_size - 1")


_MOST_BYTES = 1 << 20
_INTEGERS = (
    "pad_id",
    "blank_identifier_id",
    "vocab_size",
    "seq_len",
    "num_puzzle_identifiers",
    "total_groups",
)
_OF_TRM = "total_puzzles"


@dataclass(frozen=True)
class PuzzleDatasetMetadata:
    """The metadata of a split: the keys of HRM in its order, then the one that TRM adds.

    pad_id: token of padding.
    ignore_label_id: label without loss; None where every label has one.
    blank_identifier_id: identifier of puzzles without one.
    vocab_size: number of tokens, the padding included.
    seq_len: tokens of an input, and of a label.
    num_puzzle_identifiers: number of identifiers, the blank one included.
    total_groups: groups of all sets.
    mean_puzzle_examples: examples of all sets, divided by their puzzles.
    sets: names of the sets, in the order in which training reads them.
    total_puzzles: puzzles of all sets; None where the file does not say it, as those of HRM.
    """

    pad_id: int
    ignore_label_id: int | None
    blank_identifier_id: int
    vocab_size: int
    seq_len: int
    num_puzzle_identifiers: int
    total_groups: int
    mean_puzzle_examples: float
    sets: tuple[str, ...]
    total_puzzles: int | None = None

    def text(self) -> str:
        """The content of `dataset.json`: one line without a newline at its end."""
        values = asdict(self)
        values["mean_puzzle_examples"] = float(self.mean_puzzle_examples)
        if self.total_puzzles is None:
            del values[_OF_TRM]
        return json.dumps(values)


def parsed_metadata(text: bytes, path: Path) -> PuzzleDatasetMetadata:
    """The metadata in the bytes of `dataset.json`; keys that are not known are ignored."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise BadInput(path, "must hold an object")
    names = [spec.name for spec in fields(PuzzleDatasetMetadata)]
    if missing := [name for name in names if name not in read and name != _OF_TRM]:
        raise BadInput(path, f"lacks the keys {', '.join(missing)}")
    _check_values(read, path)
    values: dict[str, Any] = {name: read.get(name) for name in names}
    values["sets"] = tuple(values["sets"])
    values["mean_puzzle_examples"] = float(values["mean_puzzle_examples"])
    return PuzzleDatasetMetadata(**values)


def read_metadata(path: Path) -> PuzzleDatasetMetadata:
    """Read a `dataset.json`. Raises BadInput as `parsed_metadata`, OSError as reading does."""
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise BadInput(path, f"is larger than {_MOST_BYTES:,} bytes")
    return parsed_metadata(text, path)


def _check_values(read: Mapping[str, Any], path: Path) -> None:
    for name in (*_INTEGERS, *([_OF_TRM] if _OF_TRM in read else [])):
        if type(read[name]) is not int or not 0 <= read[name] < 1 << 31:
            raise BadInput(path, f"{name} must be an integer from 0 to 2147483647")
    ignored, mean, sets = (
        read[name] for name in ("ignore_label_id", "mean_puzzle_examples", "sets")
    )
    if ignored is not None and (type(ignored) is not int or abs(ignored) >= 1 << 31):
        raise BadInput(path, "ignore_label_id must be an integer or null")
    try:
        fits = type(mean) in (int, float) and math.isfinite(mean) and mean >= 0
    except OverflowError:
        fits = False
    if not fits:
        raise BadInput(path, "mean_puzzle_examples must be a number, at least 0")
    if not isinstance(sets, list) or not all(map(is_set_name, sets)):
        raise BadInput(path, "sets must be a list of names that can be parts of file names")
    if len(set(sets)) != len(sets) or not sets:
        raise BadInput(path, "sets must name at least one set, and none twice")
    if read["seq_len"] < 1 or read["vocab_size"] < 1:
        raise BadInput(path, "seq_len and vocab_size must be at least 1")


def read_identifiers(path: Path) -> list[str]:
    """Read the list of names. Raises BadInput where the file is missing or holds something else."""
    try:
        read = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BadInput(path, "is missing") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is not JSON: {error}") from error
    if not isinstance(read, list) or not all(isinstance(name, str) for name in read):
        raise BadInput(path, "must hold a list of names")
    return read


@dataclass(frozen=True)
class SourceFile:
    """One file that examples came from."""

    path: str
    sha256: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sources:
    """Where a dataset came from."""

    kind: str
    config: Mapping[str, Any]
    files: Sequence[SourceFile] = ()

    def text(self) -> str:
        """The content of `trace/sources.json`; one line for each file."""
        files = [
            json.dumps({"path": file.path, "sha256": file.sha256, **file.facts})
            for file in self.files
        ]
        listed = ",\n  ".join(files)
        head = f'{{"kind": {json.dumps(self.kind)}, "config": {json.dumps(dict(self.config))}'
        return f'{head}, "files": [\n  {listed}\n]}}\n' if files else f'{head}, "files": []}}\n'


def read_sources(path: Path) -> Sources:
    """Read `trace/sources.json`. Raises BadInput where it is not in its form."""
    try:
        read = json.loads(path.read_bytes())
        files = [
            SourceFile(
                str(entry["path"]),
                str(entry["sha256"]),
                {name: value for name, value in entry.items() if name not in ("path", "sha256")},
            )
            for entry in read["files"]
        ]
        return Sources(str(read["kind"]), dict(read["config"]), files)
    except FileNotFoundError as error:
        raise BadInput(path, "is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(path, "is not a list of sources as docs/formats/puzzles.md says") from error


Integers = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Batch:
    """Whole groups of examples, in order.

    inputs, labels: uint8 or int32 [examples, seq_len].
    origins: int32 [examples, 3]: number of the source file (-1 for none), row in it, number of
        the draw of its augmentation (0 for the source itself).
    examples: int32 [puzzles], how many examples each puzzle has, at least 1.
    puzzles: int32 [groups], how many puzzles each group has, at least 1.
    names: identifiers of the puzzles; None where none has one.

    Raises ValueError where the shapes do not fit together, and for other types.
    """

    inputs: Integers
    labels: Integers
    origins: npt.NDArray[np.int32]
    examples: npt.NDArray[np.int32]
    puzzles: npt.NDArray[np.int32]
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        count = len(self.inputs)
        if self.inputs.ndim != 2 or self.inputs.shape != self.labels.shape:
            raise ValueError(f"inputs {self.inputs.shape} and labels {self.labels.shape} differ")
        if self.inputs.dtype != self.labels.dtype or self.inputs.dtype not in (np.uint8, np.int32):
            raise ValueError("inputs and labels must both be uint8, or both int32")
        if self.origins.shape != (count, 3) or self.origins.dtype != np.int32:
            found = f"{self.origins.dtype} {self.origins.shape}"
            raise ValueError(f"origins {found}, expected int32 {(count, 3)}")
        if self.examples.min(initial=1) < 1 or self.puzzles.min(initial=1) < 1:
            raise ValueError("every puzzle needs an example, and every group a puzzle")
        if int(self.examples.sum()) != count or int(self.puzzles.sum()) != len(self.examples):
            raise ValueError("examples must add up to the rows, puzzles to their number")
        if self.names is not None and len(self.names) != len(self.examples):
            raise ValueError("names must have one entry for each puzzle")


Sets = tuple[str, str]
"""Split and set."""

_ARRAYS: Final = ("inputs", "labels", "origins", "examples", "puzzles")
_NAMES: Final = "names"


def write_part(path: Path, batches: Mapping[Sets, Batch]) -> dict[str, Any]:
    """Write batches into a new file; returns the summary that `PartBatches` needs."""
    layout: list[dict[str, Any]] = []
    with HashedFile(path) as file:
        for (split, set_name), batch in batches.items():
            arrays = {name: getattr(batch, name) for name in _ARRAYS}
            if batch.names is not None:
                text = "\n".join(batch.names).encode()
                arrays[_NAMES] = np.frombuffer(text, np.uint8)
            places = {}
            for name, array in arrays.items():
                whole = np.ascontiguousarray(array)
                places[name] = [file.bytes, whole.dtype.str, list(whole.shape)]
                file.write(whole.data)
            layout.append({"split": split, "set": set_name, "arrays": places})
    return {SHA256: file.sha256, "layout": layout}


class PartBatches:
    """The batches of one part, read array by array."""

    def __init__(self, path: Path, summary: Mapping[str, Any]) -> None:
        self.path = path
        self._layout: dict[Sets, dict[str, Any]] = {
            (each["split"], each["set"]): each["arrays"] for each in summary["layout"]
        }

    def __iter__(self) -> Iterator[Sets]:
        return iter(self._layout)

    def shape(self, key: Sets, name: str) -> tuple[int, ...]:
        """The shape of an array; (0,) where the part has no such set."""
        return tuple(self._layout[key][name][2]) if key in self._layout else (0,)

    def array(self, key: Sets, name: str) -> npt.NDArray[Any]:
        """An array of a set, read from the file; name: a field of `Batch`, without the names."""
        offset, dtype, shape = self._layout[key][name]
        count = int(np.prod(shape, dtype=np.int64))
        return np.fromfile(self.path, dtype, count, offset=offset).reshape(shape)

    def batches(self, key: Sets, name: str, rows: int) -> Iterator[npt.NDArray[Any]]:
        """An array of a set in batches of rows, read from the file one by one."""
        offset, dtype, (count, width) = self._layout[key][name]
        with self.path.open("rb") as file:
            file.seek(offset)
            for first in range(0, count, rows):
                here = min(rows, count - first)
                yield np.fromfile(file, dtype, here * width).reshape(here, width)

    def names(self, key: Sets) -> list[str] | None:
        """The identifiers of a set's puzzles, None where they have none."""
        if _NAMES not in self._layout[key]:
            return None
        text = self.array(key, _NAMES).tobytes().decode()
        return text.split("\n") if self.shape(key, "examples")[0] else []


_BATCH_BYTES = 4 << 20


class SetFiles:
    """Writes the files of one set of a split."""

    def __init__(self, out: Path, key: Sets, parts: Sequence[PartBatches], seq_len: int) -> None:
        self._out, self._key, self._seq_len = out, key, seq_len
        self._parts = [part for part in parts if key in set(part)]
        self.examples, self.puzzles, self.groups = (
            sum(part.shape(key, name)[0] for part in self._parts)
            for name in ("inputs", "examples", "puzzles")
        )

    def token_files(
        self, dtype: npt.DTypeLike, advance: Callable[[int], None]
    ) -> list[Callable[[], tuple[str, FileNote]]]:
        """Functions that write a file of tokens each; return its path and note. Threads may run."""
        from gristmill.puzzles import format as names

        split, set_name = self._key
        return [
            partial(self._write, name, path, np.dtype(kind), width, advance)
            for name, path, kind, width in (
                ("inputs", names.array(split, set_name, "inputs"), dtype, self._seq_len),
                ("labels", names.array(split, set_name, "labels"), dtype, self._seq_len),
                ("origins", names.origins(split, set_name), np.int32, 3),
            )
        ]

    def _write(
        self, name: str, path: str, dtype: np.dtype[Any], width: int, advance: Callable[[int], None]
    ) -> tuple[str, FileNote]:
        rows = max(1, _BATCH_BYTES // (width * dtype.itemsize))
        with HashedFile(self._out / path) as file:
            file.write(npy_header(dtype, (self.examples, width)))
            for part in self._parts:
                for batch in part.batches(self._key, name, rows):
                    file.write(np.ascontiguousarray(batch, dtype).data)
                    if name == "inputs":
                        advance(len(batch))
        return path, FileNote(rows=self.examples, sha256=file.sha256, bytes=file.bytes)

    def write_indices(self, identifier_of: Callable[[str], int]) -> Iterator[tuple[str, FileNote]]:
        """Write identifiers, called in order, and indices; yields path and note of each file."""
        from gristmill.puzzles import format as names

        identifiers = np.zeros(self.puzzles, np.int32)
        first = 0
        for part in self._parts:
            count = part.shape(self._key, "examples")[0]
            if (listed := part.names(self._key)) is not None:
                identifiers[first : first + count] = [identifier_of(name) for name in listed]
            first += count
        arrays = {
            "puzzle_identifiers": identifiers,
            "puzzle_indices": self._offsets("examples", self.puzzles),
            "group_indices": self._offsets("puzzles", self.groups),
        }
        for name, array in arrays.items():
            path = names.array(*self._key, name)
            with HashedFile(self._out / path) as file:
                file.write(npy_header(np.int32, array.shape) + array.tobytes())
            yield path, FileNote(rows=len(array), sha256=file.sha256, bytes=file.bytes)

    def _offsets(self, name: str, count: int) -> npt.NDArray[np.int32]:
        offsets = np.zeros(count + 1, np.int32)
        sizes: list[npt.NDArray[Any]] = [part.array(self._key, name) for part in self._parts]
        if sizes:
            np.cumsum(np.concatenate(sizes), out=offsets[1:])
        return offsets
