"""Writing the inventory of a data root: what publishing, removing and cleaning put there.

Each step is one file system call, so that a kill at any moment leaves entries that
`gristmill.provenance.inventory.missing` reads without a false or a lost finding. Source:
docs/publishing-details.md#inventory.
"""

from __future__ import annotations

import errno
from pathlib import Path, PurePosixPath

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.layout import WORK
from gristmill.provenance import find_artifacts
from gristmill.provenance.inventory import INVENTORY, Entry, State, entries, folder_of, root_above
from gristmill.publish import atomic_fs, locks
from gristmill.publish.build import Build

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def entry_of(build: Build) -> Entry:
    """The entry of a build."""
    return Entry(build.artifact, build.partition if build.shared else None)


def begin(build: Build) -> None:
    """Say that a first commit comes: the step before the rename. Later commits change nothing."""
    take_in(build.root)
    entry = entry_of(build)
    if not entry.file(build.root).exists():
        _write(entry.file(build.root, State.BEGUN))


def confirm(build: Build) -> None:
    """Say that the artifact is published: the step after the rename, or of an unchanged build."""
    entry = entry_of(build)
    if not _is_confirmed(build.root, entry):
        _confirm(build.root, entry)


def note_unchanged(build: Build) -> None:
    """`confirm` for an artifact that is up to date, in a root that may be read-only."""
    try:
        if not folder_of(build.root).is_dir():
            take_in(build.root)
        confirm(build)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise


def withdraw(folder: Path) -> None:
    """Say that a folder is removed on purpose, with all artifacts in it, before it goes."""
    root = root_above(folder) or find_artifacts.recorded_root(folder)
    if root is None:
        return
    take_in(root)
    below = [entry for entry, _ in entries(root, folder)]
    found = [Entry.of(root, item) for item in find_artifacts.artifacts(folder)]
    for entry in dict.fromkeys([*below, *found]):
        forget(root, entry)


def forget(root: Path, entry: Entry) -> None:
    """Say that one artifact partition is removed on purpose: the step before it goes."""
    removed = entry.file(root, State.REMOVED)
    present = [
        file
        for state in (State.PUBLISHED, State.BEGUN)
        if (file := entry.file(root, state)).exists()
    ]
    if not present:
        _write(removed)
    for file in present:
        file.rename(removed)


def settle(build: Build) -> None:
    """Decide whether a commit that was begun was done, before the slot of `build` is emptied."""
    _settle(build.root, entry_of(build))


def settle_folder(root: Path, folder: Path) -> None:
    """`settle` for all partitions of a folder. The caller holds the lock of its commits."""
    if not folder.is_relative_to(root) or not folder_of(root).is_dir():
        return
    for entry, state in list(entries(root, folder)):
        if state is State.BEGUN and root / entry.artifact == folder:
            _settle(root, entry)


def settle_slot(slot: Path) -> None:
    """`settle` for all commits that were begun in a slot. The caller holds its lock."""
    parent = slot.parents[2]
    root = root_above(parent)
    for entry, state in [] if root is None else list(entries(root, parent)):
        if root is not None and state is State.BEGUN and slot in entry.slots(root):
            _settle(root, entry)


def _settle(root: Path, entry: Entry) -> None:
    begun = entry.file(root, State.BEGUN)
    if not begun.exists():
        return
    if entry.is_staged(root) and not entry.is_published(root):
        begun.unlink()
    else:
        _confirm(root, entry)  # also where it was lost since: then it is missing


def take_in(root: Path) -> None:
    """Make the inventory of a data root that has none, from the records that are there.

    Artifacts that a record says it deleted (`deleted_inputs`) count as removed on purpose.
    """
    folder = folder_of(root)
    if folder.is_dir():
        return
    with locks.locked(root / WORK / f"{INVENTORY}.lock", INVENTORY, wait=True):
        if folder.is_dir():
            return
        new = root / WORK / f"{INVENTORY}.new"
        atomic_fs.remove_tree(new)
        new.mkdir()
        for item in find_artifacts.artifacts(root):
            _take_in(root, new, item)
        new.rename(folder)


def _take_in(root: Path, new: Path, item: find_artifacts.Artifact) -> None:
    entry = Entry.of(root, item)
    _write(new / entry.file(root).relative_to(folder_of(root)))
    try:
        deleted = provenance.read_record(item.record_path).deleted_inputs
    except GristmillError:
        return  # `verify` reports the record
    for path in deleted:
        gone = Entry(PurePosixPath(path).as_posix())
        wrong = PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
        if not wrong and path and not gone.is_published(root):
            _write(new / gone.file(root, State.REMOVED).relative_to(folder_of(root)))


def _is_confirmed(root: Path, entry: Entry) -> bool:
    return entry.file(root).exists() and not entry.file(root, State.REMOVED).exists()


def _confirm(root: Path, entry: Entry) -> None:
    begun = entry.file(root, State.BEGUN)
    if begun.exists():
        begun.rename(entry.file(root))
    else:
        _write(entry.file(root))
    entry.file(root, State.REMOVED).unlink(missing_ok=True)


def _write(file: Path) -> None:
    # Not flushed: on file systems with a journal the flush of the commit takes it along, and an
    # entry that a power loss took comes back with the next call for its artifact.
    try:
        file.touch()
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
