"""What must hold of a token dataset in the formats of other programs.

The files are read by the rules of the programs, `docs/consumers.md`.
Source: `docs/formats/reasoning.md#exports`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject

_HEADERS: Final = {20240520: (1, "<u2"), 20240801: (7, "<u4")}
_AGAIN: Final = "build it again"


def file_laws(subject: Subject) -> Iterator[Violation]:
    """Yields what the files of each format break that their program demands: `format`."""
    there = [name for name in _CHECKS if (subject.folder / name).is_dir()]
    asked = subject.config.get("formats", there)
    if not asked:
        yield Violation("files", ".", f"there is no folder of {', '.join(_CHECKS)}")
    for name in asked:
        try:
            _CHECKS[name](subject.folder / name)
        except (OSError, ValueError, KeyError, TypeError, BadInput) as error:
            yield Violation("format", name, str(error))


def _token_files(folder: Path) -> None:
    for path in sorted(folder.glob("tokens_*_*.bin")):
        with path.open("rb") as file:
            header = np.frombuffer(file.read(1024), "<i4")
        version, dtype = _HEADERS.get(int(header[0]), (0, "<u2"))
        size = 1024 + int(header[2]) * np.dtype(dtype).itemsize
        if header[1] != version or header[3:].any() or path.stat().st_size != size:
            raise BadInput(path, f"has not the header of its tokens: {_AGAIN}")


def _chunks(folder: Path) -> None:
    for index in sorted(folder.glob("*/index.json")):
        for said in json.loads(index.read_bytes())["chunks"]:
            path, count = index.with_name(said["filename"]), said["chunk_size"]
            with path.open("rb") as file:
                head = np.frombuffer(file.read(4 * (count + 2)), "<u4").astype(np.int64)
            size = 4 * (count + 2 + said["dim"])
            facts = [head[0], head[1], head[-1], path.stat().st_size, said["chunk_bytes"]]
            if facts != [count, 4 * (count + 2), size, size, size] or (np.diff(head[1:]) < 4).any():
                raise BadInput(path, f"has not the places of its documents: {_AGAIN}")


def _text_files(folder: Path) -> None:
    import pyarrow.parquet as pq

    files = sorted(folder.glob("shard_*.parquet"))
    if len(files) < 2:
        raise BadInput(folder, f"has not two files, of which the last is validation: {_AGAIN}")
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["text"]):
                batch["text"].cast("string")


_CHECKS: Final[dict[str, Callable[[Path], None]]] = {
    "llm.c": _token_files,
    "litdata": _chunks,
    "nanochat": _text_files,
}
"""Of each format what raises for a folder that its program does not read."""
