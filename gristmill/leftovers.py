"""What killed builds left for good: slots of artifacts that no one builds again.

The next build of an artifact sweeps its own slot (`gristmill.artifact`). A slot
of a partition that was retired, or of a dropped nested artifact, is swept here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gristmill import durable, locks
from gristmill.builds import WORK, lock_of_slot


def sweep(root: Path) -> list[Path]:
    """Remove every slot below `root` that no living builder holds; returns those removed.

    Finished parts go with them: a build that was killed starts from nothing.
    """
    return [slot for slot in _slots(root) if _remove_unless_held(slot)]


def _remove_unless_held(slot: Path) -> bool:
    try:
        with locks.held(lock_of_slot(slot), slot.name):
            durable.remove_tree(slot)
    except locks.Busy:
        return False
    return True


def _slots(root: Path) -> Iterator[Path]:
    for here, folders, _ in os.walk(root):
        if WORK in folders:
            folders.remove(WORK)
            slots = Path(here, WORK, "slots")
            if slots.is_dir():
                yield from sorted(slots.iterdir())
