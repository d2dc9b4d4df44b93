"""The file of a part of a build: the batches of one task, array after array.

The summary of the part, which the part store keeps, says where each array is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.hashing import HashedFile
from gristmill.puzzles.format.batch import Batch
from gristmill.run.parts import SHA256

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
    """The batches of one part, read array by array.

    path: of the part. summary: what `write_part` returned.
    """

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
