"""What is to go: leftovers of killed builds, and published artifacts that nobody wants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gristmill import durable, locks
from gristmill.builds import WORK, lock_of_slot


def abandoned(root: Path) -> Iterator[Path]:
    """Slots below `root` that hold something though no builder is at work on them."""
    for here, folders, _ in os.walk(root):
        if WORK in folders:
            folders.remove(WORK)
            yield from (
                slot for slot in sorted(Path(here, WORK, "slots").glob("*")) if not _is_held(slot)
            )


def sweep(slot: Path) -> None:
    """Remove a slot's staging folder and parts. Raises locks.Busy if a builder came."""
    with locks.held(lock_of_slot(slot), slot.name):
        durable.remove_tree(slot)


def withdraw(folder: Path) -> None:
    """Remove the published artifact `folder`, which is gone at one rename.

    Raises locks.Busy where a builder is at work on it. A kill in between leaves
    a slot that `abandoned` finds.
    """
    slot = folder.parent / WORK / "slots" / folder.name
    with locks.held(lock_of_slot(slot), folder.name):
        durable.remove_tree(slot)
        slot.mkdir(parents=True)
        durable.place(folder, slot / "withdrawn")
        durable.remove_tree(slot)


def _is_held(slot: Path) -> bool:
    try:
        with locks.held(lock_of_slot(slot), slot.name):
            return False
    except locks.Busy:
        return True
