"""One partition built by several processes or machines, each of which makes some of the parts.

They share the part store of the build's fingerprint, on one file system, and while they work the
partition's lock, so that no publisher clears the store. The process that finds the parts of all
ranks publishes. Source: docs/publishing-details.md#builds-by-rank and the heading behind it.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from gristmill.layout import PARTS
from gristmill.publish import atomic_fs
from gristmill.publish.build import (
    Attempt,
    Build,
    InputChanged,
    InputDamaged,
    Published,
    Slot,
    check_space,
    translate_disk_errors,
)
from gristmill.publish.input_proof import InputProof
from gristmill.publish.publish import is_current, publish
from gristmill.run import locks
from gristmill.run.parts import PartStore, Share, ShareMade
from gristmill.run.progress import SILENT, Progress

_SHARES: Final = "shares"


class Ranks(Protocol):
    """The parts of one build, by rank; a family's builder provides it."""

    world_size: int
    """Number of ranks."""

    def names(self, rank: int) -> Sequence[str]:
        """Names of the parts of a rank."""
        ...

    def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
        """Make the parts of a rank that the store does not have."""
        ...


@dataclass(frozen=True)
class RankBuilt:
    """What one rank did.

    published: the artifact where this call published it or found it published, else None.
    """

    made: int
    missing: Sequence[int]
    published: Published | None


def build_rank(
    build: Build, ranks: Ranks, rank: int, progress: Progress = SILENT, *, wait: bool = False
) -> RankBuilt:
    """Make the parts of one rank, and publish if the parts of all ranks are finished.

    Ranks may run at once and in any order, and again: finished parts are adopted. Raises ValueError
    for another rank; locks.Busy where there is such a process and `wait` is False; and what
    `publish` raises.
    """
    if not 0 <= rank < ranks.world_size:
        raise ValueError(f"rank {rank}: must be from 0 to {ranks.world_size - 1}")
    slot = Slot.of(build)
    own = slot.lock.with_name(f"{slot.lock.name}@rank{rank}")
    with locks.locked(own, f"rank {rank} of {build.title}", wait, progress=progress):
        if is_current(build):
            return RankBuilt(0, [], publish(build, wait=True, progress=progress))
        parts = PartStore(slot.work / PARTS / build.parts_key)
        with (
            translate_disk_errors(build),
            locks.locked(slot.lock, build.title, wait, shared=True, progress=progress),
        ):
            parts.folder.mkdir(parents=True, exist_ok=True)
            check_space(build, parts.folder)
            made: list[str] = []
            with _proved(build, parts, f"rank{rank}", made, progress):
                made += _unfinished(ranks, rank, parts)
                ranks.make(rank, parts, progress)
    missing = [each for each in range(ranks.world_size) if _unfinished(ranks, each, parts)]
    if missing:
        return RankBuilt(len(made), missing, None)
    # The others let go of the lock; one of them may be first.
    return RankBuilt(len(made), [], publish(build, wait=True, progress=progress))


@contextmanager
def _proved(
    build: Build, store: PartStore, maker: str, made: Sequence[str], progress: Progress
) -> Iterator[None]:
    """Prove the inputs before and after parts are made within.

    made: the parts, which are known after it. Where an input changed they are forgotten: what was
        made from it must not be adopted.
    """
    proof = InputProof(build, progress)
    proof.before()
    store.begin(maker, proof.digest())
    try:
        yield
        proof.after()
    except (InputChanged, InputDamaged):
        for name in made:
            store.forget(name)
        store.end(maker)
        raise
    store.end(maker)


def _unfinished(ranks: Ranks, rank: int, parts: PartStore) -> list[str]:
    """Parts of a rank without an entry; the publisher compares their hashes, too."""
    return [name for name in ranks.names(rank) if not parts.is_listed(name)]


@dataclass(frozen=True)
class ShareBuilt:
    """What one share did.

    published: whether the build was published before, so that nothing was to be done.
    """

    made: int = 0
    taken_over: int = 0
    parts: int = 0
    published: bool = False


def build_share(build: Build, number: int, of: int, progress: Progress = SILENT) -> ShareBuilt:
    """Make every `of`-th part of a build, from the `number`-th (1 to `of`) on; publish nothing.

    Shares may run at once, on several machines, in any order, and again: finished parts are taken
    over, and a part appears by rename. `publish` takes all of them over and makes what is missing.
    A builder that makes parts from parts gets the first of these steps in shares: the tasks must
    not depend on parts that are finished before. Raises ValueError for another number; locks.Busy
    where a publisher builds the partition; and InputChanged, InputDamaged, DiskFull and what the
    builder raises.
    """
    if not 1 <= number <= of:
        raise ValueError(f"share {number}: must be from 1 to {of}")
    slot = Slot.of(build)
    with translate_disk_errors(build), locks.locked(slot.lock, build.title, shared=True):
        if is_current(build):
            return ShareBuilt(published=True)
        home, shares = slot.work / PARTS / build.parts_key, slot.work / _SHARES
        for folder in (home, shares):
            folder.mkdir(parents=True, exist_ok=True)
        check_space(build, home)
        # Its name is the maker's in the store: the same share may run twice at once.
        own = Path(tempfile.mkdtemp(prefix=f"share{number}-", dir=shares))
        share = Share(number, of, home)
        store = PartStore(own / PARTS, share=share)
        try:
            with _proved(build, store, own.name, share.names, progress):
                staged = own / "staging"
                try:
                    build.make(Attempt(staged, build.folder, store, build.recipe, progress))
                except ShareMade:
                    pass
                except BaseException as error:
                    # Frames can keep a worker pool alive, which writes into the folder.
                    traceback.clear_frames(error.__traceback__)
                    raise
        finally:
            atomic_fs.remove_tree(own)
    return ShareBuilt(len(share.names), store.use.taken_over, share.total)
