"""Batches of examples while a dataset is built, the file of a part, and parts joined to arrays.

The examples of a set are known before its first file is written, so every file is written once,
from its beginning to its end, and hashed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import FileNote
from gristmill.hashing import HashedFile
from gristmill.run.parts import SHA256
from gristmill.untrusted.npy_header import npy_header

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
        from gristmill.puzzles.format import names

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
        self,
        name: str,
        path: str,
        dtype: np.dtype[Any],
        width: int,
        advance: Callable[[int], None],
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
        """Write identifiers and indices; yields path and note of each file.

        identifier_of: the number of a name; called in the order of the puzzles.
        """
        from gristmill.puzzles.format import names

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
        for field, array in arrays.items():
            path = names.array(*self._key, field)
            with HashedFile(self._out / path) as file:
                file.write(npy_header(np.int32, array.shape) + array.tobytes())
            yield path, FileNote(rows=len(array), sha256=file.sha256, bytes=file.bytes)

    def _offsets(self, name: str, count: int) -> npt.NDArray[np.int32]:
        offsets = np.zeros(count + 1, np.int32)
        sizes: list[npt.NDArray[Any]] = [part.array(self._key, name) for part in self._parts]
        if sizes:
            np.cumsum(np.concatenate(sizes), out=offsets[1:])
        return offsets
