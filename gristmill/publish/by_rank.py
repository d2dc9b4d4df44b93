"""One partition built by several processes or machines, each of which makes some of the parts.

They share the part store of the build's fingerprint, on one file system, and while they work the
partition's lock, so that no publisher clears the store. The process that finds the parts of all
ranks publishes. Source: docs/publishing-details.md#builds-by-rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gristmill.layout import PARTS
from gristmill.publish.build import (
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
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress


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
            proof = InputProof(build, progress)
            proof.before()
            parts.begin(maker := f"rank{rank}", proof.digest())
            made = _unfinished(ranks, rank, parts)
            try:
                ranks.make(rank, parts, progress)
                proof.after()
            except (InputChanged, InputDamaged):
                for name in made:  # what was made from it must not be adopted
                    parts.forget(name)
                parts.end(maker)
                raise
            parts.end(maker)
    missing = [each for each in range(ranks.world_size) if _unfinished(ranks, each, parts)]
    if missing:
        return RankBuilt(len(made), missing, None)
    # The others let go of the lock; one of them may be first.
    return RankBuilt(len(made), [], publish(build, wait=True, progress=progress))


def _unfinished(ranks: Ranks, rank: int, parts: PartStore) -> list[str]:
    """Parts of a rank without an entry; the publisher compares their hashes, too."""
    return [name for name in ranks.names(rank) if not parts.is_listed(name)]
