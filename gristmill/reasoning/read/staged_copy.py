"""Copies of files that are hashed while they are written, and get their names when they are right.

`stage.py` says which. Source: `docs/formats/reasoning.md#staging`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import HashedFile, sha256_file
from gristmill.publish.build import DiskFull
from gristmill.publish.disk_space import is_disk_full
from gristmill.reasoning.format import foreign_pt, staged
from gristmill.reasoning.format.shard_list import Shard
from gristmill.reasoning.format.staged import Entry, Journal
from gristmill.run.progress import Progress, Stage

SPARE_BYTES: Final = 64 << 20
"""Free space that staging leaves."""

_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Copy:
    """One file to copy.

    source: where it is. path: POSIX, below the job's folder.
    sha256: of the file by its record or its meta; None where neither has it.
    shard: whose tensor it holds; None for other files.
    """

    source: Path
    path: str
    sha256: str | None = None
    shard: Shard | None = None


def copy_all(
    copies: Sequence[Copy], target: Path, known: Mapping[str, Entry], progress: Progress
) -> dict[str, Entry]:
    """Copy files that are not there yet, in their order.

    Returns `known` with the new entries. Raises as `stage`.
    """
    journal = Journal(target)
    journal.mend()
    entries = dict(known) | journal.read()[1]
    missing = [copy for copy in copies if not os.path.lexists(target / copy.path)]
    _check_room(missing, target)
    total = sum(map(_size, copies))
    with progress.stage("stage", "bytes", total) as stage:
        for copy in copies:
            entry = _present(copy, target, entries.get(copy.path))
            if entry is None:
                entry = _copied(copy, target, journal, stage)
            else:
                stage.advance(entry.bytes)
            entries[copy.path] = entry
    return entries


def is_below(target: Path, path: str) -> bool:
    """Whether a path in the job's folder leads over no link to another place."""
    return (target / path).parent.resolve() == target.resolve() / Path(path).parent


def _check_room(missing: Sequence[Copy], target: Path) -> None:
    needed = sum(map(_size, missing)) + SPARE_BYTES
    free = shutil.disk_usage(target).free
    if missing and free < needed:
        raise DiskFull(
            f"{target}: needs {needed:,} bytes for {len(missing)} files, {free:,} are free: make"
            " room, stage fewer ranks, or use another disk; nothing was copied"
        )


def _size(copy: Copy) -> int:
    try:
        return copy.source.stat().st_size
    except OSError as error:
        raise BadInput(
            copy.source, f"cannot be read ({error.strerror}): build it again, or copy it again"
        ) from error


def _present(copy: Copy, target: Path, known: Entry | None) -> Entry | None:
    """The entry of a file that is there and right; None where it must be copied."""
    path = target / copy.path
    if not is_below(target, copy.path):
        raise GristmillError(f"{path}: its folder is a link: remove the link")
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISREG(found.st_mode) and found.st_size == _size(copy):
        sha256 = sha256_file(path)
        if sha256 == (copy.sha256 or sha256_file(copy.source)):
            own = known.own if known is not None else False
            return Entry(copy.path, found.st_size, sha256, own)
    if known is None or not known.own or not stat.S_ISREG(found.st_mode):
        raise GristmillError(
            f"{path}: another file is in the way, which staging did not put there: remove it, or"
            " use another folder"
        )
    path.unlink()
    return None


def _copied(copy: Copy, target: Path, journal: Journal, stage: Stage) -> Entry:
    """Copy one file. Raises BadInput where it is not the expected one."""
    path = target / copy.path
    temporary = staged.temporary(path)
    journal.begin(copy.path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        entry = _written(copy, temporary, stage)
        journal.end(entry)
        temporary.rename(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if is_disk_full(error):
            raise DiskFull(
                f"{path}: {error.strerror}: make room and stage again: what was copied is used"
            ) from error
        raise BadInput(copy.source, f"cannot be copied to {path}: {error}") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return entry


def _written(copy: Copy, temporary: Path, stage: Stage) -> Entry:
    """Write the copy under its temporary name, and compare its hashes."""
    tensor, begin, end = hashlib.sha256(), 0, 0
    if copy.shard is not None:
        begin, (sequences, seq_len) = foreign_pt.payload(copy.source)
        end = begin + 4 * sequences * seq_len
    with HashedFile(temporary) as out, copy.source.open("rb", buffering=0) as source:
        while data := source.read(_READ_BYTES):
            at = out.bytes
            tensor.update(memoryview(data)[max(begin - at, 0) : max(end - at, 0)])
            out.write(data)
            stage.advance(len(data))
        sha256, size = out.sha256, out.bytes
    _refuse(copy, "sha256", sha256, copy.sha256)
    if copy.shard is not None:
        _refuse(copy, "tensor sha256", tensor.hexdigest(), copy.shard.sha256)
    descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return Entry(copy.path, size, sha256)


def _refuse(copy: Copy, what: str, found: str, expected: str | None) -> None:
    if expected is not None and found != expected:
        raise BadInput(
            copy.source,
            f"its {what} is {found[:12]}, its record or the manifest says {expected[:12]}: it was"
            " changed or damaged: build it again, or copy it again; it was not staged",
        )
