"""Parts of a build: the store that keeps finished parts, and the one runner that makes them.

A part is one file that a worker writes from a known range of the input. The
store lies in a folder that belongs to one fingerprint (code version, config,
inputs), so a part in it was made from the same things; its sha256 is checked
before it is used. A killed build therefore goes on where it stopped.

How processes are started: `workers.py`. Several files from one part:
`part_streams.py`. What an artifact is made of does not belong here.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from gristmill.hashing import sha256_file
from gristmill.run.build_mark import BuildMark, marked
from gristmill.run.workers import Engine, ordered_map, other_machines

Task = TypeVar("Task")

SHA256: Final = "sha256"
"""Key of a part's summary: the hash of the part, where it was hashed as it was written."""


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


class ShareMade(Exception):
    """The parts of a share are finished; it ends the builder, which has not all parts to join."""


@dataclass
class Share:
    """Which parts of a build one process makes: every `of`-th, from the `number`-th on.

    number: from 1 to `of`.
    of: number of shares.
    home: folder of the finished parts of all shares, on the file system of the store's folder.
    under_way: whether `run_parts` makes the share now. A call meanwhile makes all of its parts,
        since tasks of the share depend on them.
    total: parts of the build, of all shares.
    names: parts of this share that it made; the others were there.
    """

    number: int
    of: int
    home: Path
    under_way: bool = False
    total: int = 0
    names: list[str] = field(default_factory=list)

    def chosen(self, tasks: Iterable[tuple[str, Task]]) -> Iterator[tuple[str, Task]]:
        """Yield the tasks of this share, and count all."""
        for index, named in enumerate(tasks):
            self.total += 1
            if index % self.of == self.number - 1:
                yield named


@dataclass(frozen=True)
class PartStore:
    """Parts in `folder`, which exists. Pickles, so workers can hold it.

    use: what `run_parts` counts in this process.
    share: makes `run_parts` make a share only. Its finished parts are then in `share.home`, and
        `folder`, where parts are written first, belongs to this process alone. Default None.
    """

    folder: Path
    use: Use = field(default_factory=Use, compare=False, repr=False)
    share: Share | None = field(default=None, compare=False, repr=False)

    @property
    def home(self) -> Path:
        """The folder of the finished parts."""
        return self.folder if self.share is None else self.share.home

    def count(self) -> int:
        """Number of finished parts; 0 if the folder is not there."""
        return sum(1 for _ in self.home.glob("*.json"))

    def data(self, name: str) -> Path:
        """The file of the finished part `name`."""
        return self.home / f"{name}.part"

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

    def _ledger(self, name: str) -> Path:
        return self.home / f"{name}.json"

    def remove_unfinished(self) -> None:
        """Remove what killed writers left, so that no writer goes on in such a file.

        A half-written SQLite file and its journal would be taken for a database.
        """
        for path in self.folder.iterdir():
            if path.suffix in (".part", ".json"):
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


@dataclass(frozen=True)
class _Finish(Generic[Task]):
    """Makes a part unless the store has it; gives name, summary, and whether the store had it.

    kept: whether a later build may use the part again.
    mark: of the build, where processes on other machines make its parts.
    """

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
    engine: what runs the tasks, unless the build is `on_other_machines`.

    Raises WorkerDied where a worker was killed or crashed, and what `make` raises.
    Closing the generator ends the workers. A store with a share makes that share of the parts,
    yields none, and raises ShareMade: the tasks must not depend on what is yielded.
    """
    share = None if store is None else store.share
    if store is not None and share is not None and not share.under_way:
        _make_share(make, tasks, store, share, workers, engine)
        raise ShareMade
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


def _make_share(
    make: Callable[[Task, Path], dict[str, Any]],
    tasks: Iterable[tuple[str, Task]],
    store: PartStore,
    share: Share,
    workers: int,
    engine: Engine,
) -> None:
    """Make the parts of a share that the store does not have."""
    share.under_way = True
    with _finishing(make, share.chosen(tasks), store, True, workers, engine) as results:
        for name, _, taken_over in results:
            store.use.parts += 1
            store.use.taken_over += taken_over
            if not taken_over:
                share.names.append(name)
