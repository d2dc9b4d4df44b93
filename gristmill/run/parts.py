"""Parts of a build: the one runner that makes them, and keeps finished ones in a store.

A part is one file that a worker writes from a known range of the input. A killed build resumes,
since finished parts are in a store; a short build writes none.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from gristmill.contract import FileNote, GristmillError
from gristmill.hashing import HashedFile, NamedFile, sha256_file, sha256_sources
from gristmill.run.workers import Engine, ordered_map, other_machines

_LIBRARIES: Final = ("numpy", "numba", "pyarrow", "polars", "orjson", "tiktoken", "gigatoken")
_SOURCES: Final = Path(__file__).resolve().parent.parent
_LOOKS, _BETWEEN_SECONDS = 10, 0.3
"""A network file system may show a new file late."""


class NotTheBuild(GristmillError):
    """A process that should make a part does not see the folder of the build, or not its code."""


@dataclass(frozen=True)
class BuildMark:
    """A file in the folder of parts, which is there while the build takes parts."""

    path: Path
    host: str
    text: str
    code: tuple[tuple[str, str], ...]

    def attempt(self) -> str:
        """A name for one attempt at a part, which no other attempt has.

        Raises NotTheBuild, naming this machine, for other code and for another folder.
        """
        here = socket.gethostname()
        if differing := sorted({name for name, _ in set(code()) ^ set(self.code)}):
            mine, theirs = dict(code()), dict(self.code)
            listed = ", ".join(
                f"{name} {mine.get(name, 'missing')} (the build: {theirs.get(name, 'missing')})"
                for name in differing
            )
            raise NotTheBuild(
                f"{here}: makes no parts of a build on {self.host}, since it would run other code: "
                f"{listed}. All nodes need the same checkout and libraries"
            )
        if not self._seen(_LOOKS):
            raise NotTheBuild(
                f"{here}: does not see {self.path}, which the build on {self.host} wrote: the data "
                "root must be on a file system that all nodes have, at the same path"
            )
        return secrets.token_hex(4)

    def check(self) -> None:
        """Raise NotTheBuild where the build has ended, so that nothing is added to its parts."""
        if not self._seen(1):
            raise NotTheBuild(
                f"{socket.gethostname()}: the build on {self.host} has ended: no part is added"
            )

    def _seen(self, looks: int) -> bool:
        for look in range(looks):
            if look:
                time.sleep(_BETWEEN_SECONDS)
            with suppress(OSError, ValueError):
                if self.path.read_text() == self.text:
                    return True
        return False


@contextmanager
def marked(folder: Path) -> Iterator[BuildMark]:
    """Give the mark of a build that takes parts into `folder`; it is removed on leaving."""
    token = secrets.token_hex(16)
    mark = BuildMark(folder / f".{token}.build", socket.gethostname(), token, code())
    mark.path.write_text(mark.text)
    try:
        yield mark
    finally:
        mark.path.unlink(missing_ok=True)


@cache
def code() -> tuple[tuple[str, str], ...]:
    """What this process runs, by name: sources of the package, Python and libraries."""
    versions = {"gristmill": sha256_sources(_SOURCES)[:16], "python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return tuple(sorted(versions.items()))


SHA256: Final = "sha256"
"""Key of a part's summary: the hash of the part, where it was hashed as it was written."""

_INPUTS: Final = ".inputs"


@dataclass
class Use:
    """How many parts of a store a build used.

    parts: all of them. taken_over: those that an earlier build had finished.
    """

    parts: int = 0
    taken_over: int = 0

    def notes(self) -> list[str]:
        """A line for the user, where parts were taken over."""
        if not self.taken_over:
            return []
        return [f"{self.taken_over:,} of {self.parts:,} parts taken over from an earlier build"]


@dataclass(frozen=True)
class PartStore:
    """Parts in `folder`, which exists. Pickles, so workers can hold it."""

    folder: Path
    use: Use = field(default_factory=Use, compare=False, repr=False)

    def count(self) -> int:
        """Number of finished parts; 0 if the folder is not there."""
        return sum(1 for _ in self.folder.glob("*.json"))

    def data(self, name: str) -> Path:
        """The file of the finished part `name`."""
        return self.folder / f"{name}.part"

    def finished(self, name: str) -> dict[str, Any] | None:
        """The summary of part `name` if the part is there and whole, else None."""
        try:
            entry = json.loads(self._ledger(name).read_bytes())
            if sha256_file(self.data(name)) == entry["sha256"]:
                return dict(entry["summary"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        return None

    def is_listed(self, name: str) -> bool:
        """Whether part `name` was finished; `finished` also compares its hash."""
        return self._ledger(name).exists() and self.data(name).exists()

    def forget(self, name: str) -> None:
        """Remove part `name` if it is there, so that it is made again."""
        self._ledger(name).unlink(missing_ok=True)
        self.data(name).unlink(missing_ok=True)

    def begin(self, maker: str, inputs: str) -> None:
        """Note what a maker of parts reads, until `end`. Call it before a part is looked up.

        maker: its name, such as that of a rank; one that continues has the name that it had.

        A maker without `end` was killed or failed, so nobody knows whether its inputs stayed as
        they were. Where it noted another digest, or none that can be read, all parts are removed.
        It may be at work, too, so it stays noted, as a maker that has no part from before.
        """
        notes = dict(self._notes())
        if any(note != inputs.encode() for note in notes.values()):
            self._forget_all()
            for other in notes.keys() - {maker}:
                self._write_note(other, inputs)
        elif maker in notes:
            return
        self._write_note(maker, inputs)

    def end(self, maker: str) -> None:
        """Say that the inputs of a maker stayed as noted, or that its parts are gone."""
        self._note(maker).unlink(missing_ok=True)

    def _notes(self) -> Iterator[tuple[str, bytes]]:
        """Yield the notes of makers that have not ended, by maker."""
        for path in self.folder.glob(f"*{_INPUTS}"):
            with suppress(FileNotFoundError):  # it ended meanwhile
                yield path.stem, path.read_bytes()

    def _note(self, maker: str) -> Path:
        return self.folder / f"{maker}{_INPUTS}"

    def _write_note(self, maker: str, inputs: str) -> None:
        # Other makers read it meanwhile, and would take half of it for another digest.
        new = self.folder / f"{maker}{_INPUTS}.writing"
        new.write_text(inputs)
        new.replace(self._note(maker))

    def _forget_all(self) -> None:
        # The ledger goes first: it vouches for the part. The notes stay, as they condemn both.
        for suffix in (".json", ".part"):
            for path in self.folder.glob(f"*{suffix}"):
                path.unlink(missing_ok=True)

    def _ledger(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def remove_unfinished(self) -> None:
        """Remove what killed writers left, so that no writer continues in such a file.

        A half-written SQLite file and its journal would be taken for a database.
        """
        for path in self.folder.iterdir():
            if path.suffix in (".part", ".json", _INPUTS):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    @contextmanager
    def writing(
        self, name: str, mark: BuildMark | None = None
    ) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Give a path to write part `name` to, and a dict for its JSON summary.

        mark: of the build, where processes of several machines may write the part at once: each
            then has a path of its own, and one that the build does not wait for any more adds
            nothing. Default None.

        There is no file at the path yet. On leaving without an error the part
        becomes visible to `finished`: first its data, then the ledger entry that
        vouches for it. A summary that has SHA256 loses it to the ledger entry.
        """
        attempt = f"{name}.{mark.attempt()}" if mark else name
        scratch = self.folder / f"{attempt}.writing"
        scratch.unlink(missing_ok=True)  # of a killed writer
        summary: dict[str, Any] = {}
        yield scratch, summary
        sha256 = summary.pop(SHA256, None) or sha256_file(scratch)
        entry = {"sha256": sha256, "summary": summary}
        if mark:
            mark.check()
            if self.finished(name) is not None:
                scratch.unlink()  # of two attempts the first one stays
                return
        scratch.replace(self.data(name))
        ledger = self.folder / f"{attempt}.json.writing"
        ledger.write_text(json.dumps(entry))
        ledger.replace(self._ledger(name))


Task = TypeVar("Task")


@dataclass(frozen=True)
class _Finish(Generic[Task]):
    """Makes a part unless the store has it; gives name, summary, and whether the store had it."""

    make: Callable[[Task, Path], dict[str, Any]]
    store: PartStore
    kept: bool
    mark: BuildMark | None = None

    def __call__(self, named: tuple[str, Task]) -> tuple[str, dict[str, Any], bool]:
        name, task = named
        if self.kept and (finished := self.store.finished(name)) is not None:
            return name, finished, True
        if self.kept or self.mark:
            with self.store.writing(name, self.mark) as (path, summary):
                summary.update(self.make(task, path))
            return name, summary, False
        # Read once by this build, then removed: nobody asks for its hash.
        made = self.make(task, self.store.data(name))
        made.pop(SHA256, None)
        return name, made, False


@contextmanager
def _finishing(
    make: Callable[[Task, Path], dict[str, Any]],
    tasks: Iterable[tuple[str, Task]],
    store: PartStore,
    kept: bool,
    workers: int,
    engine: Engine,
) -> Iterator[Iterator[tuple[str, dict[str, Any], bool]]]:
    """Give the results of `_Finish` from the engine that the build is to use."""
    elsewhere = other_machines() if workers > 1 else None
    if elsewhere is None:
        with closing(engine(_Finish(make, store, kept), tasks, workers)) as results:
            yield results
        return
    with (
        marked(store.folder) as mark,
        closing(elsewhere(_Finish(make, store, kept, mark), tasks, workers)) as results,
    ):
        yield results


def run_parts(
    make: Callable[[Task, Path], dict[str, Any]],
    tasks: Iterable[tuple[str, Task]],
    store: PartStore | None,
    workers: int,
    *,
    scratch: Path,
    engine: Engine = ordered_map,
) -> Generator[tuple[str, Path, dict[str, Any]]]:
    """Yield (name, path of the finished part, summary) of each task, in the order of the tasks.

    make: writes the part of a task to a path where no file is yet, and returns a
        summary that JSON can hold. With the key SHA256 it says what the part hashes
        to; otherwise a part that is kept is read once more.
    tasks: (name, task). In one store a name stands for one content: where the
        same name could mean other input, put that input into the name. Tasks are
        taken as workers become free, so a task may depend on the results so far
        only where `workers` is at most 1.
    store: keeps the parts, and parts finished in it are not made again. None: each
        part is removed once the caller asks for the next one.
    workers: processes; 0 or 1 makes the parts in this process. `make` and the
        tasks must pickle for more.
    scratch: folder for the parts where there is no store; it is left as it was.

    Raises WorkerDied where a worker was killed or crashed, and what `make` raises.
    Closing the generator ends the workers.
    """
    kept = store is not None
    parts = store or PartStore(Path(tempfile.mkdtemp(prefix=".parts-", dir=scratch)))
    try:
        with _finishing(make, tasks, parts, kept, workers, engine) as results:
            for name, summary, taken_over in results:
                parts.use.parts += 1
                parts.use.taken_over += taken_over
                path = parts.data(name)
                yield name, path, summary
                if not kept:
                    parts.forget(name)
    finally:
        if not kept:
            shutil.rmtree(parts.folder)


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


def needs_file(store: PartStore | None, name: str) -> bool:
    """Whether the part `name` of a build of one worker goes through its file in a store."""
    return store is not None and (not isinstance(store, LatePartStore) or store.needs(name))


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
    if workers > 1:
        yield from _from_files(run_parts(writer, tasks, store, workers, scratch=scratch))
        return
    for name, task in tasks:
        if needs_file(store, name):
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
    """Files of an artifact under construction, by stream, which are hashed as they are written."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._paths, self._files = files, dict[str, HashedFile]()
        for name, path in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = HashedFile(path)

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of each stream so far."""
        return {name: file.bytes for name, file in self._files.items()}

    def write(self, name: str, data: Bytes) -> None:
        """Append to the file of stream `name`."""
        self._files[name].write(data)

    def notes(self, out: Path, rows: Mapping[str, int]) -> dict[str, FileNote]:
        """The note of each file by its path in `out`; rows: of streams that have any."""
        return {
            path.relative_to(out).as_posix(): FileNote(
                rows.get(name), sha256=self._files[name].sha256, bytes=self._files[name].bytes
            )
            for name, path in self._paths.items()
        }

    def __enter__(self) -> StreamFiles:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()
