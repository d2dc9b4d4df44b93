"""Names below `.gristmill/`: where one artifact partition is built, and the locks it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill.layout import WORK
from gristmill.publish.build import Build

SLOTS: Final = "slots"
_LOCKS: Final = "locks"


@dataclass(frozen=True)
class Slot:
    """Names below `.gristmill` for one artifact partition.

    Locks and slots are in folders of their own, so that no artifact's name can
    be the name of another artifact's lock.
    """

    work: Path
    lock: Path
    folder_lock: Path

    @staticmethod
    def of(build: Build) -> Slot:
        """The slot of a build."""
        outermost = build.root / (build.outer or build.artifact)
        work, name = outermost.parent / WORK, outermost.name
        own = name
        if build.shared:
            own = f"{name}@{build.partition}"
        elif build.outer is not None:
            inside = PurePosixPath(build.artifact).relative_to(build.outer)
            own = f"{name}+{str(inside).replace('/', '+')}"
        slot = work / SLOTS / own
        return Slot(slot, lock_of_slot(slot), work / _LOCKS / name)


def slot_of_folder(folder: Path) -> Path:
    """The slot of an artifact that has `folder` to itself and is not nested in another."""
    return folder.parent / WORK / SLOTS / folder.name


def lock_of_folder(folder: Path) -> Path:
    """The lock of a folder that several partitions share."""
    return folder.parent / WORK / _LOCKS / folder.name


def lock_of_slot(slot: Path) -> Path:
    """The lock that the builder in a slot holds.

    A nested artifact (`outer+inner`) is built under the lock of the outer one.
    """
    return slot.parents[1] / _LOCKS / slot.name.split("+")[0]
