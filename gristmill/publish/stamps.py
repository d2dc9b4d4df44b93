"""Stamps: the inode times of files of published artifacts that are as their records say.

A commit into a shared folder links the files of all partitions, and a link changes the time of the
inode. Without these notes each such file would look as if it might have been written to, and every
build that reads it would hash it. Source: docs/publishing-details.md#proof-of-inputs.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path

from gristmill.layout import STAMPS, WORK
from gristmill.provenance import Record, raw_inputs
from gristmill.provenance.raw_inputs import Stamp
from gristmill.publish.build import lock_of_folder
from gristmill.run import locks


def stamp_of(path: Path, follow: bool = False) -> Stamp | None:
    """The stamp of a regular file, None where there is none.

    follow: whether a link to one counts; default False.
    """
    try:
        found = path.stat(follow_symlinks=follow)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return raw_inputs.stamp_of(found)


def read(folder: Path) -> Mapping[str, Stamp]:
    """The stamps of a folder's files by POSIX path; none where there are no notes."""
    return raw_inputs.read_stamps(_file(folder))


def unchanged(folder: Path, records: Iterable[Record]) -> dict[str, Stamp]:
    """Stamps of the files that nobody wrote to since they were published or last noted.

    folder: a shared folder, whose lock the caller holds.
    records: of the partitions whose files are meant.
    """
    known = read(folder)
    stamps = {}
    for record in records:
        for output in record.outputs:
            stamp = stamp_of(folder / output.path)
            if stamp is None or (stamp[2], stamp[3]) != (output.bytes, output.mtime_ns):
                continue
            if stamp == known.get(output.path) or stamp[4] <= record.trusted_ns:
                stamps[output.path] = stamp
    return stamps


def keep(folder: Path, before: Mapping[str, Stamp], own: Iterable[str]) -> None:
    """Note the stamps of files as they are now, at the end of a commit into `folder`.

    before: stamps of the files of other partitions, from before they were linked.
    own: paths of the files that this commit brought, which it hashed or wrote.
    """
    stamps = {}
    for path in {*before, *own}:
        stamp = stamp_of(folder / path)
        if stamp is not None and (path not in before or stamp[:4] == before[path][:4]):
            stamps[path] = stamp
    raw_inputs.write_stamps(_file(folder), stamps)


def add(folder: Path, hashed: Mapping[str, Stamp], *, is_shared: bool) -> None:
    """Note the stamps of files that were hashed and are as recorded.

    folder: of an artifact, or shared by several, and not within another artifact.
    is_shared: whether several partitions share it; nothing is noted while one of them commits.
    """
    # The lock of another folder is that of its builder, which must not be refused for this.
    lock = locks.locked(lock_of_folder(folder), folder.name) if is_shared else nullcontext()
    try:
        with lock:
            same = {path: one for path, one in hashed.items() if stamp_of(folder / path) == one}
            raw_inputs.write_stamps(_file(folder), {**read(folder), **same})
    except (locks.Busy, OSError):
        return  # the next build hashes them again


def _file(folder: Path) -> Path:
    return folder.parent / WORK / STAMPS / f"{folder.name}.json"
