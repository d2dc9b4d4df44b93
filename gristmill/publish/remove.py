"""What is to go: leftovers of killed builds, and published artifacts that nobody wants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gristmill.layout import PARTS, WORK
from gristmill.publish import atomic_fs, locks
from gristmill.publish.slot import lock_of_slot


def abandoned(root: Path) -> Iterator[Path]:
    """Slots below `root` that hold something though no builder is at work on them."""
    for here, folders, _ in os.walk(root):
        if WORK in folders:
            folders.remove(WORK)
            yield from (
                slot for slot in sorted(Path(here, WORK, "slots").glob("*")) if not _is_held(slot)
            )


def finished_parts(slot: Path) -> int:
    """How many finished parts lie in a slot, which the next build may go on from."""
    return sum(ledger.with_suffix(".part").exists() for ledger in (slot / PARTS).glob("*/*.json"))


def sweep(slot: Path, keep_parts: bool = False) -> None:
    """Remove a slot. Raises locks.Busy if a builder came.

    keep_parts: leave the folder of parts, where a finished one is in it.
    """
    with locks.held(lock_of_slot(slot), slot.name):
        if not (keep_parts and finished_parts(slot)):
            atomic_fs.remove_tree(slot)
            return
        for entry in slot.iterdir():
            if entry.name != PARTS:
                atomic_fs.remove_tree(entry)


def withdraw(folder: Path) -> None:
    """Remove the published artifact `folder`, which is gone at one rename.

    Raises locks.Busy where a builder is at work on it. A kill in between leaves
    a slot that `abandoned` finds.
    """
    slot = folder.parent / WORK / "slots" / folder.name
    with locks.held(lock_of_slot(slot), folder.name):
        atomic_fs.remove_tree(slot)
        slot.mkdir(parents=True)
        atomic_fs.place(folder, slot / "withdrawn")
        atomic_fs.remove_tree(slot)


def _is_held(slot: Path) -> bool:
    try:
        with locks.held(lock_of_slot(slot), slot.name):
            return False
    except locks.Busy:
        return True
