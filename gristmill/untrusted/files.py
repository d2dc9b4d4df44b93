"""Opens files of a drop: regular files only, without following links, by descriptor.

Source: `docs/drops.md#links`, `docs/drops.md#what-a-drop-may-hold`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from gristmill.contract import BadInput, os_reason
from gristmill.hashing import named_reader, sha256_of

CLOCK_TICK_NS = 20_000_000
"""Kernels stamp files with a clock that lags by one tick, 10 ms at most."""

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What the kernel answers where O_NOFOLLOW or O_DIRECTORY meets another kind of entry.
_OTHER_KIND = {errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.ENODEV}
_SHOWN = 200
_LARGE = 1 << 30

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class LinkRule:
    """What happens to symbolic links in a drop, and which of its rows are read.

    follow: whether a link to a regular file in one of `roots` counts as that file;
        default False: every link is refused.
    roots: absolute paths of the folders that links may point into; default none.
    forgotten: rows that readers leave out besides, by file: their numbers from 1, and 0 for a file
        that is left out whole; default none.
    """

    follow: bool = False
    roots: tuple[str, ...] = ()
    forgotten: Mapping[Path, Collection[int]] = field(
        default_factory=dict, compare=False, repr=False
    )


REFUSE_LINKS = LinkRule()


def kind_refusal(mode: int) -> str | None:
    """Why an entry of this mode is no regular file, None where it is one."""
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFREG:
        return None
    if kind == stat.S_IFDIR:
        return "is a folder, where a file is expected"
    rule = f"is {_KINDS.get(kind, 'no regular file')}: a drop may hold regular files and folders"
    if kind == stat.S_IFLNK:
        rule += " only; copy the file, or allow links with [inbox] follow_links in gristmill.toml"
    return rule


def hole_refusal(name: str, folder: int, found: os.stat_result) -> str | None:
    """Why a large file that was hardly written is refused; None for another one."""
    written = 512 * found.st_blocks
    if found.st_size < _LARGE or 100 * written > found.st_size:
        return None
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:  # a file system that does not count blocks knows no holes
        if os.lseek(descriptor, 0, os.SEEK_HOLE) >= found.st_size:
            return None
    finally:
        os.close(descriptor)
    return (
        f"is not read: of its {found.st_size:,} bytes only {written:,} were ever written, as in a "
        "download that was not finished: get the whole file, or remove it"
    )


def open_file(
    path: Path, *, root: Path, links: LinkRule = REFUSE_LINKS, buffering: int = -1
) -> BinaryIO:
    """Open a regular file for reading.

    root: a folder that is trusted and may itself be a link: the inbox, or the drop where
        a person named it. The folders between it and the file are opened one by one,
        each without following links.

    Raises BadInput for a link, pipe, socket, device or folder, OSError where the file is
    gone or cannot be read, and ValueError for a path that is not below the root.
    """
    with _parent(path, root, links) as (folder, name, real):
        _check(real, _lstat(folder, name, real))
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            _raise(error, real)
        try:
            # The entry may be another one than the one that was looked at.
            _check(real, found := os.fstat(descriptor))
            if reason := hole_refusal(name, folder, found):
                raise BadInput(real, reason)
            return named_reader(descriptor, real, buffering)
        except BaseException:
            os.close(descriptor)
            raise


def opened(path: Path, links: LinkRule | None = None) -> BinaryIO:
    """Open a regular file for reading.

    links: what happens if it is a link, for a file of a drop; None (default) for a file that
        a person or our own code named: a link is followed.

    Raises BadInput for a pipe, socket, device or folder, without waiting for it, and OSError
    where the file is not there or cannot be read.
    """
    if links is not None:
        return open_file(path, root=path.parent, links=links)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if reason := kind_refusal(os.fstat(descriptor).st_mode):
            raise BadInput(path, reason)
        return named_reader(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise


def stat_file(path: Path, *, root: Path, links: LinkRule = REFUSE_LINKS) -> os.stat_result:
    """The stat of a regular file, by the same rules as `open_file`, without opening it.

    Arguments and errors as for `open_file`.
    """
    with _parent(path, root, links) as (folder, name, real):
        found = _lstat(folder, name, real)
        _check(real, found)
        return found


def has_file(path: Path, *, root: Path, links: LinkRule = REFUSE_LINKS) -> bool:
    """Whether there is a regular file at a path. Arguments as for `open_file`.

    Raises BadInput where there is something else.
    """
    try:
        stat_file(path, root=root, links=links)
    except FileNotFoundError:
        return False
    return True


def read_file(path: Path, *, root: Path, most: int, links: LinkRule = REFUSE_LINKS) -> bytes:
    """The bytes of a small file.

    most: bytes at most. Other arguments and errors as for `open_file`; BadInput for a file
        that is larger.
    """
    with open_file(path, root=root, links=links) as file:
        octets = file.read(most + 1)
    if len(octets) > most:
        raise BadInput(path, f"has more than {most} bytes")
    return octets


def real_path(path: Path, *, root: Path, links: LinkRule = REFUSE_LINKS) -> Path:
    """`path` itself, or where it points to if links are followed. A file or a folder.

    Arguments and errors as for `open_file`.
    """
    with _parent(path, root, links) as (_folder, _name, real):
        return real


@contextmanager
def open_folder(path: Path, *, root: Path, links: LinkRule = REFUSE_LINKS) -> Iterator[int]:
    """A descriptor of a folder, for os.scandir and as dir_fd; closed at the end."""
    with _walked(path, root, links) as (folder, real):
        try:
            descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            _raise(error, real)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def open_inner(folder: int, name: str) -> Iterator[int]:
    """A descriptor of a folder in an open folder; closed at the end."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result) -> None:
    if reason := kind_refusal(found.st_mode):
        raise BadInput(path, reason)


def _lstat(folder: int, name: str, path: Path) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        _raise(error, path)


def _raise(error: OSError, path: Path) -> NoReturn:
    """The error with the whole path in place of the name in its folder."""
    raise OSError(error.errno, error.strerror, str(path)) from error


class _Link(Exception):
    """A link on the way to a file."""


@contextmanager
def _parent(path: Path, root: Path, links: LinkRule) -> Iterator[tuple[int, str, Path]]:
    """Descriptor of the folder that holds a file, the file's name, its path without links."""
    path = Path(path)
    with _walked(path.parent, root, links) as (folder, real):
        here = real / path.name
        try:
            mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode
        except OSError:
            mode = 0
        if not (stat.S_ISLNK(mode) and links.follow):
            yield folder, path.name, here
            return
    base, target = _target(path, links)
    if target == base:
        raise BadInput(path, "is a link to a folder")
    with _walked(target.parent, base, REFUSE_LINKS) as (folder, real):
        yield folder, target.name, real / target.name


@contextmanager
def _walked(path: Path, root: Path, links: LinkRule) -> Iterator[tuple[int, Path]]:
    """Descriptor (for dir_fd only) of a folder, and its path without links below the root."""
    try:
        descriptor = _descend(path, root, links.follow)
        real = path
    except _Link:
        base, real = _target(path, links)
        descriptor = _descend(real, base, follow=False)
    try:
        yield descriptor, real
    finally:
        os.close(descriptor)


def _descend(path: Path, root: Path, follow: bool) -> int:
    base = root.parts
    if path.parts[: len(base)] != base:
        raise ValueError(f"{path} is not below {root}")
    parts = path.parts[len(base) :]  # relative_to would cost as much as to open the folder
    if ".." in parts:
        raise ValueError(f"{path}: a path below {root} must not hold '..'")
    try:
        folder = os.open(root, _FOLDER)
    except OSError as error:
        _raise(error, root)
    for level, part in enumerate(parts, 1):
        try:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            here = root.joinpath(*parts[:level])
            if error.errno in _OTHER_KIND:
                _refuse_folder(folder, part, here, follow)
            _raise(error, here)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _refuse_folder(parent: int, name: str, path: Path, follow: bool) -> None:
    mode = _lstat(parent, name, path).st_mode
    if stat.S_ISLNK(mode):
        if follow:
            raise _Link
        raise BadInput(path, str(kind_refusal(mode)))
    if not stat.S_ISDIR(mode):
        raise BadInput(path, "is no folder")


def _target(path: Path, links: LinkRule) -> tuple[Path, Path]:
    """The root that a link points into, and where it points to."""
    try:
        real = Path(os.path.realpath(path, strict=True))
    except OSError as error:
        raise BadInput(path, f"is a link that leads nowhere: {error.strerror}") from error
    for root in links.roots:
        base = Path(os.path.realpath(root))
        if real.is_relative_to(base):
            return base, real
    raise BadInput(
        path,
        f"is a link to {str(real)[:_SHOWN]!r}, which is in none of the folders that [inbox] roots"
        " in gristmill.toml names",
    )


END: Final = 1 << 16
"""Bytes of the head and of the tail by which files are compared first."""
_LEAST: Final = 1 << 14
_MOST: Final = 1 << 30


def refuse_equal(
    drop: Path, sizes: Mapping[str, int], links: LinkRule = REFUSE_LINKS, most: int = _MOST
) -> None:
    """Raise BadInput where two files of a drop have the same bytes; arguments as `equal_pair`."""
    if pair := equal_pair(drop, sizes, links, most):
        raise BadInput(drop / pair[1], equal_rule(pair[0]))


def equal_pair(
    drop: Path, sizes: Mapping[str, int], links: LinkRule = REFUSE_LINKS, most: int = _MOST
) -> tuple[str, str] | None:
    """Two files of a drop that have the same bytes, as far as a look can tell; None without.

    most: bytes to read at most, default 1 GiB: a few seconds.

    Files of one size are compared by their first and last 64 KiB, and those that agree as a whole.
    What would take more than `most` is left to whoever knows the sums. Raises BadInput for a file
    that cannot be read.
    """
    by_size: dict[int, list[str]] = {}
    for name, size in sorted(sizes.items()):
        by_size.setdefault(size, []).append(name)
    left = most
    for size, names in sorted(by_size.items()):
        if not size or len(names) < 2:
            continue
        # A file that is opened costs something, however short it is.
        left -= len(names) * max(min(size, 2 * END), _LEAST)
        if left < 0:
            return None
        for same in alike(drop, names, links, partial(ends, size)):
            pair = same
            if size > 2 * END:
                left -= size * len(same)
                pair = next(alike(drop, same, links, _whole), []) if left >= 0 else []
            if pair:
                return pair[0], pair[1]
    return None


def equal_rule(other: str) -> str:
    """The rule that a file breaks that has the bytes of another one of its drop."""
    return f"has the bytes of {other}: its records would count twice: take one of them out"


def alike(
    drop: Path, names: Sequence[str], links: LinkRule, digest: Callable[[Path, LinkRule, Path], str]
) -> Iterator[list[str]]:
    """Yield the names of files whose digest is equal, two at least. Raises BadInput as above."""
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            found.setdefault(digest(drop / name, links, drop), []).append(name)
        except FileNotFoundError:
            continue  # removed after it was listed: the next look sees the drop without it
        except OSError as error:
            raise BadInput(drop / name, f"cannot be read: {os_reason(error)}") from error
    return (same for same in found.values() if len(same) > 1)


def ends(size: int, path: Path, links: LinkRule, root: Path) -> str:
    """The digest of the head and the tail of a file. size: its bytes. Raises as `open_file`."""
    with open_file(path, root=root, links=links, buffering=0) as file:
        octets = file.read(END)
        file.seek(max(size - END, len(octets)))
        return hashlib.sha256(octets + file.read(END)).hexdigest()


def _whole(path: Path, links: LinkRule, root: Path) -> str:
    with open_file(path, root=root, links=links, buffering=0) as file:
        return sha256_of(file)
