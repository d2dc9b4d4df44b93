"""Copy a folder or a file into an inbox so that it appears there whole, or not at all.

The copy grows in a hidden folder or file beside its place, and a copy that was killed continues
there: what it has is compared with the source byte by byte, and kept as far as it is equal. At the
end one rename brings it to its place, with a list of its sums, by which the sensor verifies it.
Source: docs/drops.md#gristmill-drop.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import sha256_of
from gristmill.inbox.listing import unfit_name
from gristmill.inbox.marks import (
    DONE,
    FORGOTTEN,
    INCOMPLETE,
    SETTINGS,
    SUMS,
    is_only_sample,
    listed_sums,
    mark_of,
    written_sums,
)
from gristmill.printable import printable
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.walk import list_files

_COPY_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Tools:
    """What the copy needs from elsewhere.

    place: renames a path to another one in one step; raises FileExistsError where that exists.
    staged: called with the whole copy of a folder before it takes the place of another drop.
    adds: files that the copy of a folder has beside those of the source, by name. They may be
        corrected there: no list of sums has them, and one that the drop has stays.
    """

    place: Callable[[Path, Path], None]
    exchange: Callable[[Path, Path], None]
    advance: Callable[[int], None]
    links: LinkRule
    staged: Callable[[Path], None] | None = None
    adds: Mapping[str, bytes] = field(default_factory=dict)


def _stage(
    source: Path, staged: Path, sizes: Mapping[str, int], tools: Tools
) -> tuple[dict[str, str], int]:
    """Make the copy beside its place; returns the sums of its files, and the bytes written."""
    is_folder = source.is_dir()
    if staged.is_symlink() or (os.path.lexists(staged) and staged.is_dir() != is_folder):
        _remove(staged)
    expected: dict[str, str] = {}
    if is_folder:
        _clear(staged, sizes)
        if os.path.lexists(source / SUMS):
            expected = listed_sums(source / SUMS, source)
        if absent := sorted(
            each for each in expected.keys() - sizes if not (source / each).exists()
        ):
            raise BadInput(
                source / SUMS, f"lists {printable(absent[0])}, which is not there: get it first"
            )
    sums, written = {}, 0
    # The mark `.done` counts if no file came after it.
    for name in sorted(sizes, key=lambda name: (name == DONE, name)):
        path, target = _file(source, name, is_folder), _file(staged, name, is_folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, more = _copy_file(path, target, source if is_folder else source.parent, tools)
        written += more
        if expected.get(name, digest) != digest:
            raise BadInput(path, f"its sha256 is not the one in {source / SUMS}: get it again")
        if name != DONE and not (is_folder and name == FORGOTTEN):
            sums[name] = digest
    for name, octets in tools.adds.items():
        write_whole(staged / name, octets)
    return sums, written


def _file(drop: Path, name: str, is_folder: bool) -> Path:
    return drop / name if is_folder else drop


def _copy_file(source: Path, target: Path, root: Path, tools: Tools) -> tuple[str, int]:
    """Copy what of a file is not in the copy yet; returns its sha256 and the bytes written."""
    digest, size, written = hashlib.sha256(), 0, 0
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        open_file(source, root=root, links=tools.links, buffering=0) as file,
        os.fdopen(os.open(target, flags, 0o666), "r+b") as copy,
    ):
        before = os.fstat(file.fileno())
        while octets := file.read(_COPY_BYTES):
            digest.update(octets)
            if written or copy.read(len(octets)) != octets:
                copy.seek(size)
                copy.write(octets)
                written += len(octets)
            size += len(octets)
            tools.advance(len(octets))
        copy.truncate(size)
        after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise BadInput(source, "changed while it was copied: copy again when it is complete")
        copy.flush()
        os.utime(copy.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
        os.fsync(copy.fileno())
    return digest.hexdigest(), written


def _clear(staged: Path, sizes: Mapping[str, int]) -> None:
    """Remove from an earlier copy what the source does not have."""
    for here, folders, names in os.walk(staged, topdown=False):
        for path in (Path(here, name) for name in (*names, *folders)):
            is_wanted = path.relative_to(staged).as_posix() in sizes
            mode = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFDIR
            if not (stat.S_ISDIR(mode) or (is_wanted and stat.S_ISREG(mode))):
                path.unlink()
        with suppress(OSError):  # it has files
            Path(here).rmdir()
    staged.mkdir(exist_ok=True)


def _remove(path: Path) -> None:
    """Remove a file, or a folder and all below it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


THERE_ALREADY: Final = "there already"


class DropExists(GristmillError):
    """There is a drop with this name and other contents."""


@dataclass(frozen=True)
class Copied:
    """What became of a copy.

    written: bytes that this call wrote; the others were there.
    status: `copied`, `replaced` or THERE_ALREADY, where the drop had these files.
    sums: sha256 of each file, by its path in the drop; that of a drop that is a file by its name.
    """

    place: Path
    files: int
    bytes: int
    written: int
    status: str
    sums: Mapping[str, str]

    def __str__(self) -> str:
        kept = self.bytes - self.written
        resumed = f"; {kept:,} bytes were copied before" if self.written and kept > 0 else ""
        counted = f"{self.files:,} file{'' if self.files == 1 else 's'}, {self.bytes:,} bytes"
        return f"{self.place}: {self.status} ({counted}{resumed})"


def source_files(source: Path, links: LinkRule) -> dict[str, int]:
    """Returns the bytes of each file to copy, by its path in the source; a file's path is its name.

    Raises BadInput for an entry that a drop may not hold, a source that says that it is not
    complete, a name as `unfit_name` says, and one without files; OSError where it cannot be read.
    """
    if not source.is_dir():
        if (unfit := unfit_name([source.name])) is not None:
            raise BadInput(source, unfit[1])
        with open_file(source, root=source.parent, links=links) as file:
            return {source.name: os.fstat(file.fileno()).st_size}
    sizes = {}
    for entry in list_files(source, root=source, links=links):
        if entry.refusal is not None:
            raise BadInput(source / entry.name, entry.refusal)
        if entry.name == INCOMPLETE:
            raise BadInput(source / entry.name, "says that the folder is not complete")
        if entry.name != SUMS and entry.stat.st_mode:
            sizes[entry.name] = entry.stat.st_size
    if (unfit := unfit_name(sizes)) is not None:
        raise BadInput(source / unfit[0], unfit[1])
    if not set(sizes) - {DONE}:
        raise BadInput(source, "has no file: there is nothing to copy")
    return sizes


def copy_in(
    source: Path, place: Path, sizes: Mapping[str, int], tools: Tools, replace: bool = False
) -> Copied:
    """Copy a folder or a file into an inbox.

    A sample is always replaced, a drop with other contents by `replace`. Raises DropExists for a
    drop with other contents, BadInput for a source that is not as its own SHA256SUMS says or that
    changes meanwhile, GristmillError while another process copies to the same place, and where the
    disk has no room or cannot be written.
    """
    try:
        return _copied(source, place, sizes, tools, replace)
    except OSError as error:
        raise GristmillError(
            f"{error.filename or place}: {error.strerror or error}: when that is mended, run the "
            "command again; the copy continues where it stopped"
        ) from error


def _copied(
    source: Path, place: Path, sizes: Mapping[str, int], tools: Tools, replace: bool
) -> Copied:
    place.parent.mkdir(parents=True, exist_ok=True)
    is_folder = source.is_dir()
    staged = place.parent / f".{place.name}.copying"
    counted = [size for name, size in sizes.items() if name != DONE]
    with only_copy(place):
        exists = os.path.lexists(place)
        status, written = "replaced" if exists else "copied", 0
        if exists and (equal := _equal_sums(source, place, sizes, tools)) is not None:
            status, sums = THERE_ALREADY, equal
            _remove(staged)
        elif exists and not replace and not is_only_sample(place):
            raise DropExists(
                f"{place}: is there with other contents: choose another name with --name, or "
                "replace it with --replace"
            )
        else:
            _check_space(staged, sum(sizes.values()))
            sums, written = _stage(source, staged, sizes, tools)
            if is_folder:
                write_whole(staged / SUMS, written_sums(sums))
                if exists and place.is_dir():
                    _keep_forgotten(source, place, staged, tools.links)
                    if tools.staged is not None:
                        tools.staged(staged)
                for here, _, _ in os.walk(staged, topdown=False):
                    _flush(Path(here))
            else:
                Path(f"{place}.incomplete").touch()
            if exists:
                tools.exchange(staged, place)
            else:
                try:
                    tools.place(staged, place)
                except FileExistsError as error:
                    raise DropExists(
                        f"{place}: came while it was copied: run the command again"
                    ) from error
            _flush(place.parent)
            _remove(staged)
        if not is_folder:
            sums = {place.name: next(iter(sums.values()))}
            if status != THERE_ALREADY:
                mark_of(place).unlink(missing_ok=True)
            write_whole(Path(f"{place}.sha256"), written_sums(sums))
            Path(f"{place}.incomplete").unlink(missing_ok=True)
            _flush(place.parent)
    return Copied(place, len(counted), sum(counted), written, status, sums)


def _check_space(staged: Path, size: int) -> None:
    """Raise GristmillError where the disk has no room for what is not copied yet."""
    there = [path for path in (staged, *staged.rglob("*")) if path.is_file()]
    needed = size - sum(path.stat().st_size for path in there)
    free = shutil.disk_usage(staged.parent).free
    if needed > free:
        raise GristmillError(
            f"{staged.parent}: needs {needed:,} bytes, {free:,} are free: make room, then run it "
            "again"
        )


def _keep_forgotten(source: Path, place: Path, staged: Path, links: LinkRule) -> None:
    """Give a copy the tombstones of the drop that it replaces.

    Raises DropExists where the source has others of its own.
    """
    if not os.path.lexists(place / FORGOTTEN):
        return
    with open_file(place / FORGOTTEN, root=place, links=links) as file:
        octets = file.read()
    if os.path.lexists(source / FORGOTTEN) and (staged / FORGOTTEN).read_bytes() != octets:
        rule = f"has another {FORGOTTEN} than {source}: put the lines of both into the one there"
        raise DropExists(f"{place}: {rule}, and take the other out")
    write_whole(staged / FORGOTTEN, octets)


def _equal_sums(
    source: Path, place: Path, sizes: Mapping[str, int], tools: Tools
) -> dict[str, str] | None:
    """The sums of a drop that has the files of the source, with the same bytes; else None."""
    is_folder = source.is_dir()
    try:
        there = source_files(place, tools.links) if place.is_dir() == is_folder else {}
    except BadInput:
        return None
    sums = {}
    if not tools.adds.keys() <= there.keys():
        return None
    beside = {FORGOTTEN, *tools.adds, *([SETTINGS] if tools.adds else [])}
    for name in beside - sizes.keys():
        there.pop(name, None)
    if not is_folder:
        there = dict(zip(sizes, there.values(), strict=False))
    if {**there, DONE: 0} != {**sizes, DONE: 0}:
        return None
    for name in sorted(set(sizes) - {DONE}):
        sums[name], digest = (
            _digest(_file(drop, name, is_folder), tools.links) for drop in (place, source)
        )
        if sums[name] != digest:
            return None
    return sums


def _digest(path: Path, links: LinkRule) -> str:
    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        return sha256_of(file)


def write_whole(path: Path, octets: bytes, mode: int = 0o666) -> None:
    """Write a small file, and the folders above it, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.parent / f".{path.name}.writing"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(hidden, flags, mode), "wb") as file:
        file.write(octets)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)


@contextmanager
def only_copy(place: Path) -> Iterator[None]:
    """Hold the lock of a place, so that one process copies to it. The kernel frees it at death."""
    path = place.parent / f".{place.name}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that had the lock removes the file at its end.
            if _is_at(path, descriptor):
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return
        except BlockingIOError as error:
            raise GristmillError(f"{place}: another process copies to it: wait for it") from error
        finally:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file is still the one at a path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    return False


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
