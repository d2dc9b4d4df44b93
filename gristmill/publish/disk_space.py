"""Free disk space, checked before a build; errors of the disk in the words of the user."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gristmill.contract import FileFailed, in_words
from gristmill.publish.build import Build, DiskFull

_SPARE_BYTES = 1 << 20  # records, lists of inputs and headers
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# SQLite reports ENOSPC by a code of its own, but quotas and limits as a failed write.
_SQLITE_DISK_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE}


def bytes_of(*places: Path) -> int:
    """Returns the bytes of files, and of the files that lie in folders, for an estimate.

    places: files and folders; what is missing counts 0, since the proof of the inputs says more.
    """
    total = 0
    for place in places:
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        total += sum(file.stat().st_size for file in files if file.is_file())
    return total


def check(build: Build, folder: Path) -> None:
    """Raise DiskFull where the disk of `folder` has less free space than `build` needs."""
    free = shutil.disk_usage(folder).free
    if free < build.space + _SPARE_BYTES:
        raise DiskFull(
            f"{build.title}: needs about {build.space + _SPARE_BYTES:,} bytes in {build.root}, "
            f"{free:,} are free: make room or move the data root; nothing was changed"
        )


@contextmanager
def translate_errors(build: Build) -> Iterator[None]:
    """Raise DiskFull where the disk is full, FileFailed where it or the network failed."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if is_disk_full(error):
            raise DiskFull(
                f"{build.title}: {error}: make room in {build.root} and build again; "
                "what was published before is untouched"
            ) from error
        found = OSError(errno.EIO, str(error)) if _is_sqlite_failure(error) else error
        said = in_words(found, f"a file in {build.root}")
        if said is found:
            raise
        raise FileFailed(
            f"{build.title}: {said}; what was published before is untouched"
        ) from error


def _is_sqlite_failure(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF == sqlite3.SQLITE_IOERR


def is_disk_full(error: BaseException) -> bool:
    """Whether an error means that the disk, a quota or a limit on file sizes is full."""
    if isinstance(error, OSError):
        return error.errno in _DISK_FULL
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_DISK_FULL
    return False
