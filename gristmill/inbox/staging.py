"""The part of `copying.py` that makes a copy beside its place, or goes on with one.

What an earlier copy has is compared with the source byte by byte, and kept as far as it is equal.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from gristmill.contract import BadInput
from gristmill.inbox.lists import listed_sums
from gristmill.inbox.marks import DONE, SUMS
from gristmill.printable import printable
from gristmill.untrusted.files import LinkRule, open_file

_COPY_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Tools:
    """What the copy needs from elsewhere.

    place: renames a path to another one in one step; raises FileExistsError where that exists.
    exchange: swaps two paths in one step.
    advance: called with the bytes of each piece that was copied or compared.
    links: what happens to links in the source.
    """

    place: Callable[[Path, Path], None]
    exchange: Callable[[Path, Path], None]
    advance: Callable[[int], None]
    links: LinkRule


def stage(
    source: Path, staged: Path, sizes: Mapping[str, int], tools: Tools
) -> tuple[dict[str, str], int]:
    """Make the copy beside its place; returns the sums of its files, and the bytes written.

    source, sizes, tools: as for `copying.copy_in`.
    staged: the hidden folder or file that becomes the drop.

    Raises as `copying.copy_in`.
    """
    is_folder = source.is_dir()
    if staged.is_symlink() or (os.path.lexists(staged) and staged.is_dir() != is_folder):
        remove(staged)
    if is_folder:
        staged.mkdir(exist_ok=True)
        _clear(staged, sizes)
    expected = _expected(source, sizes) if is_folder else {}
    sums, written = {}, 0
    # The mark `.done` counts if no file came after it.
    for name in sorted(sizes, key=lambda name: (name == DONE, name)):
        target = staged / name if is_folder else staged
        path = source / name if is_folder else source
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, more = _copy_file(path, target, source if is_folder else source.parent, tools)
        written += more
        if expected.get(name, digest) != digest:
            raise BadInput(path, f"its sha256 is not the one in {source / SUMS}: get it again")
        if name != DONE:
            sums[name] = digest
    return sums, written


def _expected(source: Path, sizes: Mapping[str, int]) -> dict[str, str]:
    """The sums that the source itself lists; none without a list."""
    if not os.path.lexists(source / SUMS):
        return {}
    expected = listed_sums(source / SUMS, source)
    if absent := sorted(set(expected) - set(sizes)):
        raise BadInput(
            source / SUMS, f"lists {printable(absent[0])}, which is not there: get it first"
        )
    return expected


def _copy_file(source: Path, target: Path, root: Path, tools: Tools) -> tuple[str, int]:
    """Copy what of a file is not in the copy yet; returns its sha256 and the bytes written."""
    digest, written, same = hashlib.sha256(), 0, True
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        open_file(source, root=root, links=tools.links, buffering=0) as file,
        os.fdopen(os.open(target, flags, 0o666), "r+b", buffering=0) as copy,
    ):
        before = os.fstat(file.fileno())
        while octets := file.read(_COPY_BYTES):
            digest.update(octets)
            same = same and _has(copy, octets)
            if not same:
                written += len(octets)
                write_all(copy, octets)
            tools.advance(len(octets))
        copy.truncate()
        after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise BadInput(source, "changed while it was copied: copy again when it is complete")
        os.utime(copy.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
        os.fsync(copy.fileno())
    return digest.hexdigest(), written


def _has(copy: BinaryIO, octets: bytes) -> bool:
    """Whether the copy goes on with these bytes; else its position is that of the first of them."""
    start, there = copy.tell(), b""
    while len(there) < len(octets) and (more := copy.read(len(octets) - len(there))):
        there += more
    if there == octets:
        return True
    copy.seek(start)
    return False


def write_all(copy: BinaryIO, octets: bytes) -> None:
    """Write all of `octets` to a file without a buffer."""
    view = memoryview(octets)
    while view:
        view = view[copy.write(view) :]


def _clear(staged: Path, sizes: Mapping[str, int]) -> None:
    """Remove from an earlier copy what the source does not have."""
    folders = {name[:at] for name in sizes for at, sign in enumerate(name) if sign == "/"}
    for here, inner, names in os.walk(staged):
        prefix = "" if Path(here) == staged else f"{Path(here).relative_to(staged).as_posix()}/"
        for name in [*inner]:
            path = Path(here, name)
            if f"{prefix}{name}" not in folders or path.is_symlink():
                remove(path)
                inner.remove(name)
        for name in names:
            path = Path(here, name)
            if f"{prefix}{name}" not in sizes or not stat.S_ISREG(path.lstat().st_mode):
                path.unlink()


def remove(path: Path) -> None:
    """Remove a file, or a folder and all below it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
