"""Notes of files that are as a record says, by inode and times, which spare hashing them again."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size, and times of the last change of contents and of the inode."""


def stamp_of(found: os.stat_result) -> Stamp:
    """The stamp of a file."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read(file: Path) -> Mapping[str, Stamp]:
    """The stamps in a file of notes, by POSIX path; none where it cannot be read."""
    try:
        entries = json.loads(file.read_bytes())
        return {path: _stamp(*values) for path, values in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _stamp(device: int, inode: int, size: int, mtime_ns: int, ctime_ns: int) -> Stamp:
    stamp = device, inode, size, mtime_ns, ctime_ns
    if not all(type(number) is int for number in stamp):
        raise TypeError("a stamp has five integers")
    return stamp


def write(file: Path, stamps: Mapping[str, Stamp]) -> None:
    """Write notes. Without them files are hashed again, so a full disk is no error here.

    Nothing is written while another process writes the same notes.
    """
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.new")
        with new.open("a") as target:
            fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(target.fileno()), new.stat()):
                return  # another process wrote and renamed it before the lock was held
            _replace(file, new, target, json.dumps(stamps))


def _replace(file: Path, new: Path, target: TextIO, text: str) -> None:
    try:
        target.truncate(0)  # what a killed process left
        target.write(text)
        target.flush()
        new.replace(file)
    except OSError:
        new.unlink()
        raise
