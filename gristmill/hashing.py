"""sha256 of files."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO

_READ_BYTES = 1 << 20


def sha256_file(path: Path, advance: Callable[[int], None] | None = None) -> str:
    """Hex sha256 of a file's bytes, read 1 MiB at a time.

    path: a regular file.
    advance: called with the bytes read, for progress; default None.

    Raises OSError where it is something else: reading a pipe or device may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        return sha256_of(file, advance)


def sha256_of(file: BinaryIO | RawIOBase, advance: Callable[[int], None] | None = None) -> str:
    """Hex sha256 of the bytes of an open file from its position on, read 1 MiB at a time.

    file: open for reading.
    advance: as for `sha256_file`.
    """
    digest = hashlib.sha256()
    while data := file.read(_READ_BYTES):
        digest.update(data)
        if advance is not None:
            advance(len(data))
    return digest.hexdigest()
