"""The bytes of a record or of its list of inputs, whatever is in the file's place.

A data root may come from elsewhere: a pipe, a link or an endless file instead of a record
is an error, and no program waits for it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill.contract import GristmillError

LIMIT: Final = 1 << 28
"""Most bytes of a record or a list of inputs; a list of a million raw files has less."""


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file of at most LIMIT bytes.

    path: of a record or a list of inputs; the last part is not followed where it is a link.

    Raises OSError as opening does, and GristmillError for anything but such a file.
    """
    if path.is_symlink():
        raise GristmillError(f"{path}: is a link, where a record is a file of its own")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise GristmillError(f"{path}: is not a regular file")
        if found.st_size > LIMIT:
            raise GristmillError(f"{path}: has {found.st_size:,} bytes, at most {LIMIT:,} are read")
        return file.read(LIMIT)


def wrong_path(path: str) -> str | None:
    """Why a path in a record cannot be one below its folder, None where it can."""
    parts = PurePosixPath(path).parts
    if not parts or "\0" in path:
        return "is empty or has a null byte"
    if path.startswith("/"):
        return "is absolute"
    if ".." in parts:
        return "leads out of its folder"
    return None
