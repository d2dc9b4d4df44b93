"""Reading folders that a builder may replace meanwhile, without holding a lock.

A commit puts another folder in the place of the old one and removes that. Who
reads for longer than an instant asks before and after whether it is still the
same folder, and looks again where it is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_TRIES = 10

Generation = tuple[int, int, int, int] | None
"""Which folder stands at a path, and when its entries last changed; None where none does."""


def generation(folder: Path) -> Generation:
    """What differs after another folder was put there, or a nested one into this one.

    Time beside the inode number: that of a removed folder is soon used again.
    """
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns


def generations(folders: Iterable[Path]) -> dict[Path, Generation]:
    """`generation` of each folder."""
    return {folder: generation(folder) for folder in folders}


def listing(folder: Path) -> tuple[list[str], list[str]]:
    """(names of folders, of all else) in `folder`, of one moment, both sorted.

    Links count as what is no folder. Empty where the folder cannot be read. A
    folder that files pour into all the time is taken as last seen.
    """
    found: list[tuple[str, bool]] = []
    for _ in range(_TRIES):
        before = generation(folder)
        try:
            with os.scandir(folder) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            found = []
        if generation(folder) == before:
            break
    folders = sorted(name for name, is_folder in found if is_folder)
    return folders, sorted(name for name, is_folder in found if not is_folder)
