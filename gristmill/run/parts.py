"""Parts of a build: the one runner that makes them, and keeps finished ones in a store.

A part is one file that a worker writes from a known range of the input. A killed build resumes,
since finished parts are in a store: `part_store.py`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from gristmill.run.part_store import SHA256, BuildMark, PartStore, Share, ShareMade, Use, marked
from gristmill.run.workers import Engine, ordered_map, other_machines

__all__ = ["SHA256", "PartStore", "Share", "ShareMade", "Use", "run_parts"]

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
