"""The arrays of one set: parts, one after another, as the files of the contract.

The examples of a set are known before its first file is written, so every file is written once,
from its beginning to its end, and hashed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import FileNote
from gristmill.hashing import HashedFile
from gristmill.puzzles.format import names
from gristmill.puzzles.format.part_file import PartBatches, Sets
from gristmill.untrusted.npy_header import npy_header

_BATCH_BYTES = 4 << 20


class SetFiles:
    """Writes the files of one set of a split.

    out: the staged dataset; the folders of the files are there.
    parts: of the build, in order; those without the set are passed over.

    examples, puzzles, groups: of all parts.
    """

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
        """Functions that write inputs, labels and origins; each returns path and note of its file.

        They may run in several threads: NumPy, the hash and the system let go of Python's lock.
        """
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
