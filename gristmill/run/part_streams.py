"""Parts that hold several named byte streams, and the files that the streams are appended to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from gristmill.contract import GristmillError
from gristmill.hashing import HashedFile, NamedFile
from gristmill.run.parts import SHA256, PartStore, run_parts

Task = TypeVar("Task")
Bytes = bytes | bytearray | memoryview
Made = tuple[Mapping[str, Bytes], dict[str, Any]]
"""What a task yields: its streams by name, and a summary that JSON can hold."""

_READ_BYTES: Final = 1 << 20

VARIABLE: Final = "GRISTMILL_PARTS_SECONDS"
"""Seconds of a build whose parts are not kept where they need no file."""
_SECONDS: Final = 30.0


def seconds_without_parts() -> float:
    """Seconds from the begin of a build in which it keeps no part that needs no file."""
    text = os.environ.get(VARIABLE, "").strip()
    try:
        seconds = float(text) if text else _SECONDS
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise GristmillError(f"{VARIABLE}={text}: must be seconds, 0 or more")
    return seconds


@dataclass(frozen=True)
class LatePartStore(PartStore):
    """Keeps the streams of a build from a time on, since a short one makes them again sooner.

    keep_from: by `time.monotonic`; parts that were finished before are used at any time.
    """

    keep_from: float = field(default=0.0, compare=False, repr=False)

    def needs(self, name: str) -> bool:
        """Whether part `name` goes through its file: it was finished before, or is to be kept."""
        return time.monotonic() >= self.keep_from or self.is_listed(name)


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
    must be read before the next part is asked for. One worker makes no file of a part that the
    store does not need. Raises what `run_parts` raises.
    """
    writer = _WriteStreams(make)
    if workers > 1 or (store is not None and store.share is not None):
        yield from _from_files(run_parts(writer, tasks, store, workers, scratch=scratch))
        return
    for name, task in tasks:
        if store is not None and (not isinstance(store, LatePartStore) or store.needs(name)):
            yield from _from_files(run_parts(writer, [(name, task)], store, 1, scratch=scratch))
        else:
            streams, summary = make(task)
            yield streams.items(), summary


def _from_files(
    finished: Iterable[tuple[str, Path, dict[str, Any]]],
) -> Iterator[tuple[Iterable[tuple[str, Bytes]], dict[str, Any]]]:
    for _, path, entry in finished:
        yield _read(path, entry["streams"]), entry["summary"]


class StreamFiles:
    """Files of an artifact under construction, by stream; counts the bytes of each."""

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
