"""Names below `.gristmill/`: where one artifact partition is built, and the locks it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gristmill.layout import WORK
from gristmill.publish.build import Build


@dataclass(frozen=True)
class Slot:
    """Names below `.gristmill` for one artifact partition.

    Locks and slots lie in folders of their own, so that no artifact's name can
    be the name of another one's lock.
    """

    work: Path
    lock: Path
    folder_lock: Path

    @staticmethod
    def of(build: Build) -> Slot:
        outermost = build.root / (build.outer or build.artifact)
        work, name = outermost.parent / WORK, outermost.name
        own = name
        if build.shared:
            own = f"{name}@{build.partition}"
        elif build.outer is not None:
            inside = PurePosixPath(build.artifact).relative_to(build.outer)
            own = f"{name}+{str(inside).replace('/', '+')}"
        return Slot._named(work, own, name)

    @staticmethod
    def at(root: Path, artifact: str) -> Slot:
        """The slot of an artifact that has a folder to itself and lies in no other one."""
        folder = root / artifact
        return Slot._named(folder.parent / WORK, folder.name, folder.name)

    @staticmethod
    def _named(work: Path, own: str, outermost: str) -> Slot:
        slot = work / "slots" / own
        return Slot(slot, lock_of_slot(slot), work / "locks" / outermost)


def lock_of_slot(slot: Path) -> Path:
    """The lock that the builder in a slot holds.

    A nested artifact (`outer+inner`) is built under the lock of the outer one.
    """
    return slot.parents[1] / "locks" / slot.name.split("+")[0]
