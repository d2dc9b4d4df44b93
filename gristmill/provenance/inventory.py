"""The inventory of a data root: which artifacts should be there, and what is missing of them.

Publishing, removing and cleaning write it. Each step is one file system call, so that a kill at any
moment leaves entries that `missing` reads without a false or a lost finding. Source:
docs/publishing-details.md#inventory. Here, too: whether a record belongs where it lies, which files
are its own, and which paths it may name.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.layout import INVENTORY, SLOTS, VERSIONS, WORK, without_dots
from gristmill.provenance.find_artifacts import Artifact, artifacts, artifacts_in, recorded_root
from gristmill.provenance.record import Input, Record, listing, read_record, record_path, wrong_path
from gristmill.run import locks

_MARK: Final = "@"
_READ_ONLY: Final = (errno.EROFS, errno.EACCES, errno.EPERM)


class State(StrEnum):
    """What an entry says; the value ends the name of its file.

    PUBLISHED: the artifact should be there.
    BEGUN: its first commit was begun; the entry counts once the commit is done.
    REMOVED: it was removed on purpose.
    """

    PUBLISHED = ""
    BEGUN = "@+"
    REMOVED = "@-"


@dataclass(frozen=True)
class Entry:
    """One artifact partition that an inventory names.

    partition: its key where several partitions share the folder, else None.
    """

    artifact: str
    partition: str | None = None

    @classmethod
    def of(cls, root: Path, item: Artifact) -> Entry:
        """The entry of an artifact that was found below `root`."""
        return cls(item.folder.relative_to(root).as_posix(), item.partition)

    @property
    def title(self) -> str:
        """The artifact in messages."""
        return self.artifact if self.partition is None else f"{self.artifact} [{self.partition}]"

    @property
    def name(self) -> str:
        """The artifact as commands take it; of a shared folder, this partition alone."""
        return self.artifact if self.partition is None else f"{self.artifact}@{self.partition}"

    def file(self, root: Path, state: State = State.PUBLISHED) -> Path:
        """The file of this entry in the inventory of `root`."""
        *above, name = (_quoted(part) for part in self.artifact.split("/"))
        leaf = f"{name}{_MARK}{_quoted(self.partition or '')}{state}"
        return folder_of(root).joinpath(*above, leaf)

    def record(self, root: Path) -> Path:
        """Where the record of the published artifact is."""
        folder = root / self.artifact
        return record_path(folder, self.partition, shared=self.partition is not None)

    def is_published(self, root: Path) -> bool:
        """Whether something has the place of its record, readable or not."""
        return os.path.lexists(self.record(root))

    def is_staged(self, root: Path) -> bool:
        """Whether a slot holds it as it is before its first commit."""
        # A commit takes `staging` itself, or of a shared folder `whole`: the name is free after it.
        staged = "staging" if self.partition is None else "whole"
        record = self.record(root).relative_to(root / self.artifact)
        # A builder that found the slot there adds a token: `staging@1f...`.
        for slot in self.slots(root):
            for found in (slot / staged, *slot.glob(f"{staged}@*")):
                if os.path.lexists(found / record):
                    return True
        # In the link form it is a version, before its link is there.
        folder = root / self.artifact
        versions = folder.parent / WORK / VERSIONS / folder.name
        return any(os.path.lexists(version / record) for version in _folders_in(versions))

    def slots(self, root: Path) -> Iterator[Path]:
        """The slots that builds of this artifact can have: its own, or of a nested one."""
        *above, name = self.artifact.split("/")
        own = name if self.partition is None else f"{name}{_MARK}{self.partition}"
        yield root.joinpath(*above) / WORK / SLOTS / own
        parts = (*above, name)
        for depth in range(1, len(parts)):
            folder = root.joinpath(*parts[: depth - 1]) / WORK / SLOTS
            yield folder / f"{parts[depth - 1]}+{'+'.join(parts[depth:])}"


def _folders_in(folder: Path) -> list[Path]:
    """The folders in a folder that need not exist."""
    try:
        with os.scandir(folder) as found:
            return [Path(each.path) for each in found if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def folder_of(root: Path) -> Path:
    """The folder of the inventory of a data root, which need not exist."""
    return root / WORK / INVENTORY


def root_above(path: Path) -> Path | None:
    """The nearest folder at or above `path` that has an inventory, None without one."""
    for folder in (path, *path.parents):
        if folder_of(folder).is_dir():
            return folder
    return None


def entries(root: Path, below: Path | None = None) -> Iterator[tuple[Entry, State]]:
    """The entries of an inventory with their states, in the order of their file names.

    root: the data root.
    below: only artifacts at or below this folder of the root (default: all).

    A file whose name is not that of an entry is passed over: nothing in it can be lost.
    """
    inside = () if below is None else below.relative_to(root).parts
    start = folder_of(root).joinpath(*map(_quoted, inside))
    if inside:
        for entry, state in _entries_in(start.parent, inside[:-1]):
            if entry.artifact == "/".join(inside):
                yield entry, state
    yield from _entries_below(start, inside)


def _entries_below(folder: Path, inside: tuple[str, ...]) -> Iterator[tuple[Entry, State]]:
    if not folder.is_dir():
        return
    yield from _entries_in(folder, inside)
    for name in sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()):
        yield from _entries_below(folder / name, (*inside, _unquoted(name)))


def _entries_in(folder: Path, inside: tuple[str, ...]) -> Iterator[tuple[Entry, State]]:
    if not folder.is_dir():
        return
    for leaf in sorted(entry.name for entry in os.scandir(folder) if not entry.is_dir()):
        name, _, rest = leaf.partition(_MARK)
        partition, _, state = rest.partition(_MARK)
        states = [each for each in State if each == (_MARK + state if state else "")]
        if _MARK in leaf and name and states:
            artifact = "/".join((*inside, _unquoted(name)))
            yield Entry(artifact, _unquoted(partition) or None), states[0]


def begin(root: Path, entry: Entry) -> None:
    """Say that a first commit comes: the step before the rename. Later commits change nothing."""
    take_in(root)
    if not entry.file(root).exists():
        _write(entry.file(root, State.BEGUN))


def confirm(root: Path, entry: Entry) -> None:
    """Say that the artifact is published: the step after the rename, or of an unchanged build."""
    if not entry.file(root).exists() or entry.file(root, State.REMOVED).exists():
        _confirm(root, entry)


def note_unchanged(root: Path, entry: Entry) -> None:
    """`confirm` for an artifact that is up to date, in a root that may be read-only."""
    try:
        take_in(root)
        confirm(root, entry)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise


def withdraw(folder: Path) -> None:
    """Say that a folder is removed on purpose, with all artifacts in it, before it goes."""
    root = root_above(folder) or recorded_root(folder)
    if root is None:
        return
    take_in(root)
    below = [entry for entry, _ in entries(root, folder)]
    found = [Entry.of(root, item) for item in artifacts(folder)]
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


def settle(root: Path, entry: Entry) -> None:
    """Decide whether a commit that was begun was done, before the slot of its build is emptied."""
    begun = entry.file(root, State.BEGUN)
    if not begun.exists():
        return
    if entry.is_staged(root) and not entry.is_published(root):
        begun.unlink()
    else:
        _confirm(root, entry)  # also where it was lost since: then it is missing


def settle_folder(root: Path, folder: Path) -> None:
    """`settle` for all partitions of a folder. The caller holds the lock of its commits."""
    if not folder.is_relative_to(root) or not folder_of(root).is_dir():
        return
    for entry, state in list(entries(root, folder)):
        if state is State.BEGUN and root / entry.artifact == folder:
            settle(root, entry)


def settle_slot(slot: Path) -> None:
    """`settle` for all commits that were begun in a slot. The caller holds its lock."""
    parent = slot.parents[2]
    root = root_above(parent)
    for entry, state in [] if root is None else list(entries(root, parent)):
        if root is not None and state is State.BEGUN and slot in entry.slots(root):
            settle(root, entry)


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
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for item in artifacts(root):
            _take_in(root, new, item)
        new.rename(folder)


def _take_in(root: Path, new: Path, item: Artifact) -> None:
    entry = Entry.of(root, item)
    _write(new / entry.file(root).relative_to(folder_of(root)))
    try:
        deleted = read_record(item.record_path).deleted_inputs
    except GristmillError:
        return  # `verify` reports the record
    for path in deleted:
        gone = Entry(PurePosixPath(path).as_posix())
        wrong = PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
        if not wrong and path and not gone.is_published(root):
            _write(new / gone.file(root, State.REMOVED).relative_to(folder_of(root)))


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


def missing(path: Path) -> list[Violation]:
    """What should be at or below `path` and is not, by the inventory of its data root.

    path: an absolute path; none is missing where no folder above it has an inventory.

    An artifact that is removed on purpose meanwhile is not missing.
    """
    path = without_dots(path)
    root = root_above(path)
    if root is None:
        return []
    violations = []
    for entry, state in entries(root, path):
        if state is State.REMOVED or entry.is_published(root):
            continue
        if not entry.file(root, state).exists() or entry.is_published(root):
            continue  # its state changed since the folder was listed
        if state is State.BEGUN and entry.is_staged(root):
            continue
        what = [str(root / entry.artifact)]
        what += [] if entry.partition is None else ["--partition", entry.partition]
        violations.append(
            Violation(
                "missing",
                str(root / entry.artifact if entry.partition is None else entry.record(root)),
                "it was published and is gone: build it again, bring it back, or say that it is "
                f"not wanted: gristmill remove {shlex.join(what)}",
            )
        )
    return violations


def was_removed(root: Path, artifact: str, partition: str | None) -> bool:
    """Whether an artifact was removed on purpose and not published since."""
    return State.REMOVED in _states(root, artifact, partition)


def is_unknown(root: Path, artifact: str, partition: str | None) -> bool:
    """Whether the inventory of a data root has no entry of an artifact, removed ones included.

    partition: as for `was_removed`. False where the data root has no inventory.
    """
    return folder_of(root).is_dir() and not _states(root, artifact, partition)


def _states(root: Path, artifact: str, partition: str | None) -> set[State]:
    """What the entries of an artifact say; more than one while its state changes."""
    keys = dict.fromkeys((None, partition))
    return {
        state
        for state in State
        if any(Entry(artifact, key).file(root, state).exists() for key in keys)
    }


def _quoted(name: str) -> str:
    return name.replace("%", "%25").replace(_MARK, "%40")


def _unquoted(name: str) -> str:
    return name.replace("%40", _MARK).replace("%25", "%")


@dataclass(frozen=True)
class Members:
    """What the records of some partitions say about the files of their folder.

    files: POSIX paths, relative to the folder, of all files of these, with the records.
    unclear: partitions whose records cannot: files that no record lists may be theirs.
    """

    records: Sequence[Record]
    files: frozenset[str]
    unclear: Sequence[str]


def others(folder: Path, artifact: str, partition: str | None) -> Members:
    """The members of a shared folder, but for one partition."""
    records: list[Record] = []
    files: set[str] = set()
    unclear: list[str] = []
    for item in artifacts_in(folder) if folder.is_dir() else []:
        if item.partition is None or item.partition == partition:
            continue
        record = own_record(item, artifact)
        if record is None:
            unclear.append(item.partition)
            files.add(item.record_path.relative_to(folder).as_posix())
        else:
            records.append(record)
            files.update(files_of(item, record))
    return Members(records, frozenset(files), unclear)


def own_record(item: Artifact, artifact: str) -> Record | None:
    """The record of a partition, None where it cannot be read or is that of something else."""
    try:
        record = read_record(item.record_path)
    except (GristmillError, OSError, ValueError):
        return None
    is_own = (record.artifact, record.partition) == (artifact, item.partition)
    return record if is_own and next(wrong_paths(record), None) is None else None


def files_of(item: Artifact, record: Record) -> Iterator[str]:
    """POSIX paths, relative to the folder, of a partition's files, with its record."""
    yield item.record_path.relative_to(item.folder).as_posix()
    yield from (output.path for output in record.outputs)
    if record.inputs_file is not None:
        yield record.inputs_file.path


def other_place(record: Record, artifact: Artifact) -> str | None:
    """Whose record it is, where it is not that of the folder or the partition where it lies.

    A folder that was moved or copied may keep its record; not one that stands, by the inventory of
    the data root, where another artifact was.
    """
    if artifact.partition not in (None, record.partition):
        return f"is of partition {record.partition}: build {artifact.partition} again"
    root = root_above(artifact.folder)
    if root is not None:
        entry = Entry.of(root, artifact)
        if entry.artifact != record.artifact and entry.file(root).exists():
            return f"is of {record.artifact}: put the folder there, or build {entry.title} again"
    return None


def wrong_paths(record: Record) -> Iterator[str]:
    """What is wrong with the paths that a record names."""
    named = {"artifact": [record.artifact], "outputs": [item.path for item in record.outputs]}
    named["deleted_inputs"] = list(record.deleted_inputs)
    if record.inputs_file is not None:
        named["inputs_file"] = [record.inputs_file.path]
    for field, paths in named.items():
        for path in paths:
            if reason := wrong_path(path):
                yield f"{field}: the path {path!r} {reason}"
    counts = Counter(PurePosixPath(path) for path in named["outputs"])
    for twice in (path for path, count in counts.items() if count > 1):
        yield f"outputs: the path {twice.as_posix()!r} is there more than once"


def check_inside(path: Path, folder: Path) -> None:
    """Raise BadInput where a link on the way to a path in a folder leads out of that folder.

    A link to an artifact stands for it, as to one that was moved to another disk.
    """
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(folder)) and not artifacts_in(path):
        rule = f"a link leads out of {folder}, to {str(real)!r}: copy what is there into the folder"
        raise BadInput(path, rule)


def check_links(folder: Path) -> None:
    """`check_inside` for every link at or below a folder."""
    waiting = [folder]
    for here in waiting:
        folders, _, links = listing(here)
        waiting += [here / name for name in folders if name != WORK]
        for name in links:
            check_inside(here / name, folder)


def wrong_inputs(inputs: Sequence[Input]) -> Iterator[str]:
    """What is wrong with the paths of inputs."""
    for item in inputs:
        if item.path is not None and (reason := wrong_path(item.path)):
            yield f"the path {item.path!r} {reason}"
