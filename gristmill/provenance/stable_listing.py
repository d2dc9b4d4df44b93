"""Reading folders that a builder may replace meanwhile, without holding a lock.

A commit exchanges the folder and deletes the old one. A reader compares the folder's generation
before and after, and reads again where they differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_TRIES = 10

Generation = tuple[int, int, int, int] | None
"""Which folder is at a path, and when its entries last changed; None where there is none."""


def generation(folder: Path) -> Generation:
    """The generation of `folder`: it differs after a commit of it, or of a folder nested in it.

    It has times beside the inode number, which is soon reused after a removal.
    """
    try:
        stat = folder.stat()
    except (OSError, ValueError):  # ValueError: a damaged record names a path with a zero byte
        return None
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns


def generations(folders: Iterable[Path]) -> dict[Path, Generation]:
    """`generation` of each folder."""
    return {folder: generation(folder) for folder in folders}


class Listing(NamedTuple):
    """Names in a folder, each list sorted."""

    folders: list[str]
    names: list[str]
    links: list[str]


def listing(folder: Path) -> Listing:
    """The names in `folder` at one moment.

    Empty where the folder cannot be read. Of a folder that changes all the time the last listing
    counts.
    """
    listed: list[tuple[str, bool, bool]] = []
    for _ in range(_TRIES):
        before = generation(folder)
        try:
            with os.scandir(folder) as entries:
                listed = [
                    (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                    for entry in entries
                ]
        except OSError:
            listed = []
        if generation(folder) == before:
            break
    return Listing(
        sorted(name for name, is_folder, _ in listed if is_folder),
        sorted(name for name, is_folder, _ in listed if not is_folder),
        sorted(name for name, _, is_link in listed if is_link),
    )
