"""Room on disk: whether there is enough, and how running out of it is told.

What becomes of the build that ran out belongs to `gristmill.publish.publish`.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gristmill.publish.build import Build, DiskFull

_SPARE_BYTES = 64 << 20
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# SQLite tells ENOSPC from other failures of a write, but not quotas and limits.
_SQLITE_DISK_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE}


def check(build: Build, folder: Path) -> None:
    """Raise DiskFull where `folder` lies on a disk without room for `build`."""
    free = shutil.disk_usage(folder).free
    if free < build.space + _SPARE_BYTES:
        raise DiskFull(
            f"{build.title}: needs about {build.space + _SPARE_BYTES:,} bytes in {build.root}, "
            f"{free:,} are free: make room or move the data root; nothing was changed"
        )


@contextmanager
def exhaustion_told(build: Build) -> Iterator[None]:
    """Turn the many ways in which a full disk shows into DiskFull."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if not exhausted(error):
            raise
        raise DiskFull(
            f"{build.title}: {error}: make room in {build.root} and build again; "
            "what was published before is untouched"
        ) from error


def exhausted(error: BaseException) -> bool:
    """Whether an error means that the disk, a quota or a limit on files is full."""
    if isinstance(error, OSError):
        return error.errno in _DISK_FULL
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_DISK_FULL
    return False
