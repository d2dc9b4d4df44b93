"""Work cut into parts that each yield several named byte streams, put together in order.

A part's function returns its sections (name -> bytes) and a summary that is
JSON. With a store or with workers the sections of a part lie in one part file,
so a killed build goes on; else they are passed straight on. Either way the
files come out the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from gristmill.contract import GristmillError
from gristmill.run.parts import PartStore
from gristmill.run.workers import ordered_map

Task = TypeVar("Task")
Bytes = bytes | bytearray | memoryview
Made = tuple[Mapping[str, Bytes], dict[str, Any]]

_CHUNK = 1 << 20


@dataclass(frozen=True)
class _Job(Generic[Task]):
    """One part for a worker: what to do, and the store and name it goes to."""

    make: Callable[[Task], Made]
    task: Task
    store: PartStore
    name: str


def _into_store(job: _Job[Any]) -> dict[str, Any]:
    """Make a part unless the store has it; returns its summary with the section sizes."""
    found = job.store.finished(job.name)
    if found is not None:
        return found
    sections, summary = job.make(job.task)
    with job.store.writing(job.name) as (path, entry):
        with path.open("wb", buffering=0) as file:
            for piece in sections.values():
                _write(file, piece)
        entry["summary"] = summary
        entry["sections"] = [[name, len(piece)] for name, piece in sections.items()]
    return entry


def _write(file: BinaryIO, piece: Bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[file.write(view) :]


def _split_part(path: Path, sizes: list[list[Any]]) -> Iterator[tuple[str, bytes]]:
    with path.open("rb", buffering=0) as file:
        for name, size in sizes:
            left = int(size)
            while left:
                piece = file.read(min(left, _CHUNK))
                if not piece:
                    raise GristmillError(f"{path}: the part has lost its end; remove it")
                left -= len(piece)
                yield name, piece


def scratch(out: Path, parts: PartStore | None, workers: int) -> PartStore | None:
    """The store to use: the one given, a folder of our own for workers, or none."""
    if parts is None and workers > 1:
        folder = out / ".parts"
        folder.mkdir()
        return PartStore(folder)
    return parts


def clear_scratch(out: Path) -> None:
    """Remove the folder that `scratch` may have made."""
    shutil.rmtree(out / ".parts", ignore_errors=True)


def grind(
    make: Callable[[Task], Made],
    tasks: Iterable[tuple[str, Task]],
    workers: int,
    store: PartStore | None,
) -> Iterator[tuple[Iterable[tuple[str, Bytes]], dict[str, Any]]]:
    """Yield each part's sections, as (name, bytes) pieces, and its summary, in task order.

    tasks: (part name, task); `make` and the tasks must pickle for workers > 1.
    """
    if store is None:
        for _, task in tasks:
            sections, summary = make(task)
            yield sections.items(), summary
        return
    jobs = (_Job(make, task, store, name) for name, task in tasks)
    names: list[str] = []

    def noted() -> Iterator[_Job[Task]]:
        for job in jobs:
            names.append(job.name)
            yield job

    for done, entry in enumerate(ordered_map(_into_store, noted(), workers)):
        path = store.data(names[done])
        yield _split_part(path, entry["sections"]), entry["summary"]


class Sinks:
    """Files of an artifact under construction, by section name; counts what went in."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files: dict[str, BinaryIO] = {}
        self.sizes: dict[str, int] = {}
        for name, path in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = path.open("wb", buffering=0)
            self.sizes[name] = 0

    def write(self, name: str, piece: Bytes) -> None:
        """Append to the file of section `name`."""
        _write(self._files[name], piece)
        self.sizes[name] += len(piece)

    def __enter__(self) -> Sinks:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()
