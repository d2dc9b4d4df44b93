"""Parts that hold several named byte streams, and the files that the streams are appended to.

A stream of an artifact, such as its rows or its rejects, is the streams of that
name of all parts, one after the other. How parts are made and kept: `parts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from gristmill.contract import GristmillError
from gristmill.hashing import HashedFile, NamedFile
from gristmill.run.parts import SHA256, PartStore, run_parts

Task = TypeVar("Task")
Bytes = bytes | bytearray | memoryview
Made = tuple[Mapping[str, Bytes], dict[str, Any]]
"""What a task yields: its streams by name, and a summary that JSON can hold."""

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class _WriteStreams(Generic[Task]):
    """Writes the streams of a task end to end; the summary says where each one ends."""

    make: Callable[[Task], Made]

    def __call__(self, task: Task, path: Path) -> dict[str, Any]:
        streams, summary = self.make(task)
        with HashedFile(path) as file:
            for data in streams.values():
                file.write(data)
        sizes = [[name, len(data)] for name, data in streams.items()]
        return {"summary": summary, "streams": sizes, SHA256: file.sha256}


def _write(file: NamedFile, data: Bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _read(path: Path, sizes: list[list[Any]]) -> Iterator[tuple[str, bytes]]:
    with NamedFile(path) as file:
        for name, size in sizes:
            left = int(size)
            while left:
                data = file.read(min(left, _READ_BYTES))
                if not data:
                    raise GristmillError(f"{path}: the part has lost its end; remove it")
                left -= len(data)
                yield name, data


def run_streams(
    make: Callable[[Task], Made],
    tasks: Iterable[tuple[str, Task]],
    store: PartStore | None,
    workers: int,
    *,
    scratch: Path,
) -> Iterator[tuple[Iterable[tuple[str, Bytes]], dict[str, Any]]]:
    """Yield the streams of each part, as (name, some of its bytes), and the part's summary.

    The arguments are those of `run_parts`, but `make` returns its streams. They
    must be read before the next part is asked for. Raises what `run_parts` raises.
    """
    if store is None and workers <= 1:
        # Nothing to keep and no other process: the streams need no file.
        for _, task in tasks:
            streams, summary = make(task)
            yield streams.items(), summary
        return
    writer = _WriteStreams(make)
    for _, path, entry in run_parts(writer, tasks, store, workers, scratch=scratch):
        yield _read(path, entry["streams"]), entry["summary"]


class StreamFiles:
    """Files of an artifact under construction, by stream; counts the bytes of each.

    files: stream name -> file, which is made with its folder.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files: dict[str, NamedFile] = {}
        self.sizes: dict[str, int] = {}
        for name, path in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = NamedFile(path, "wb")
            self.sizes[name] = 0

    def write(self, name: str, data: Bytes) -> None:
        """Append to the file of stream `name`."""
        _write(self._files[name], data)
        self.sizes[name] += len(data)

    def __enter__(self) -> StreamFiles:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()
