"""Notes of files that are as a record says, by inode and times, so that they are not hashed again.

They lie in `.gristmill/stamps/` beside an artifact and may be removed at any time. Who notes what:
`gristmill.publish.stamps` and `raw_inputs.py`. Source: `docs/publishing.md#proof-of-inputs`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

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
    """Write notes. Without them files are hashed again, so a full disk is no error here."""
    new = file.with_name(f"{file.name}.new{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(stamps))
        new.replace(file)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
