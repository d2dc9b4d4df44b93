"""The file system steps of a commit: flush, rename, exchange, link."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path

from gristmill.contract import GristmillError
from gristmill.hashing import named_errors

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_AT_ONCE = 8
_QUEUED = 1024


class RefusedByFileSystem(GristmillError):
    """The file system has no such rename (EINVAL, ENOSYS or ENOTSUP of renameat2)."""


def files_below(folder: Path) -> Iterator[str]:
    """POSIX paths of the regular files below `folder`, sorted, relative to it.

    Raises GristmillError for anything that is neither a folder nor a regular
    file: no hash in a record can describe a link or a pipe.
    """
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        if entry.is_dir(follow_symlinks=False):
            yield from (f"{entry.name}/{path}" for path in files_below(Path(entry.path)))
        elif entry.is_file(follow_symlinks=False):
            yield entry.name
        else:
            raise GristmillError(f"{entry.path}: an artifact holds regular files and folders only")


def flush(path: Path) -> None:
    """fsync one file or folder. A failure is final: the pages may be lost already."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with named_errors(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_all(paths: Sequence[Path]) -> None:
    """fsync files and folders, in no order; returns once all are flushed.

    A journal commits together what is asked for at once, so that several take little longer than
    one. Raises the first error in the order of `paths`, once no flush is under way.
    """
    if len(paths) == 1:
        flush(paths[0])
        return
    for begin in range(0, len(paths), _QUEUED):
        flushes = [_flushers().submit(flush, path) for path in paths[begin : begin + _QUEUED]]
        wait(flushes)
        for one in flushes:
            one.result()


def flush_tree(folder: Path) -> None:
    """fsync `folder`, and every file and folder below it."""
    flush_all([Path(here, name) for here, _, names in os.walk(folder) for name in ("", *names)])


def flush_upwards(folder: Path, root: Path, *others: Path) -> None:
    """fsync `folder` and the folders above it up to `root`: any of them may be new."""
    above = [folder]
    while above[-1] != root:
        above.append(above[-1].parent)
    flush_all([*above, *others])


@cache
def _flushers() -> ThreadPoolExecutor:
    """Threads that wait for the disk; they are kept, since most artifacts have few files."""
    return ThreadPoolExecutor(_AT_ONCE, "flush")


# A fork has none of the threads.
os.register_at_fork(after_in_child=_flushers.cache_clear)


def place(source: Path, target: Path) -> None:
    """Rename `source` to `target` in one step.

    Raises FileExistsError where `target` exists.
    """
    _renameat2(source, target, _RENAME_NOREPLACE)


def exchange(left: Path, right: Path) -> None:
    """Swap two paths, which both exist, in one step."""
    _renameat2(left, right, _RENAME_EXCHANGE)


def take_name(source: Path, target: Path) -> None:
    """`place`, also where the file system has a plain rename only; the caller holds the lock.

    Raises FileExistsError where `target` exists.
    """
    try:
        place(source, target)
    except RefusedByFileSystem:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        source.rename(target)


def can_exchange(place: Path) -> bool:
    """Whether two folders can be exchanged: tried in the new folder `place`, which is removed."""
    remove_tree(place)
    (place / "left").mkdir(parents=True)
    (place / "right").mkdir()
    try:
        _renameat2(place / "left", place / "right", _RENAME_EXCHANGE)
    except RefusedByFileSystem:
        return False
    finally:
        remove_tree(place)
    return True


def _renameat2(source: Path, target: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    outcome = libc.renameat2(
        _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flags)
    )
    if outcome == 0:
        return
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        raise RefusedByFileSystem(
            f"{target.parent}: this file system cannot exchange folders in one step "
            "(renameat2): put the data root on a local one, such as ext4, xfs or btrfs, or set "
            "GRISTMILL_PUBLISH_FORM=link"
        )
    raise OSError(number, os.strerror(number), os.fspath(source), None, os.fspath(target))


def link_tree(source: Path, target: Path, leave_out: frozenset[str] = frozenset()) -> None:
    """Make `target`, a new folder, hold hard links to the files of `source`."""
    target.mkdir()
    for path in files_below(source):
        if path in leave_out:
            continue
        link = target / path
        link.parent.mkdir(parents=True, exist_ok=True)
        os.link(source / path, link)


def remove_tree(path: Path) -> None:
    """Remove a folder and all below it, if it is there; of a link, the link alone."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
