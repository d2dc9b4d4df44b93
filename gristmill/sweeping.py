"""What killed builds left behind: found and removed without starting a new build."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gristmill import durable, locks
from gristmill.builds import WORK


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
    with locks.held(_lock_of(slot), slot.name):
        durable.remove_tree(slot)


def _lock_of(slot: Path) -> Path:
    # A nested artifact (`outer+inner`) is built under the lock of the outer one.
    return slot.parent.with_name("locks") / slot.name.split("+")[0]


def _is_held(slot: Path) -> bool:
    try:
        with locks.held(_lock_of(slot), slot.name):
            return False
    except locks.Busy:
        return True
