"""What is published and may be pushed: artifacts of a data root, and the record of an open one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.mirror.layout import Version, sha256_of, wrong_name
from gristmill.provenance import Record, find_artifacts, record_file, record_place
from gristmill.provenance.inventory import Entry
from gristmill.reading.folder import OpenFolder
from gristmill.run import amounts

T = TypeVar("T")
Item = tuple[find_artifacts.Artifact, Record | None]
"""An artifact, and its record where it can be read."""

_ATTEMPTS: Final = 20


@dataclass(frozen=True)
class Pushed:
    """What a push did with one artifact partition.

    title: the artifact, and the partition of a shared folder.
    version: the version in the mirror; None where the push of this artifact failed.
    created: whether this call created the version.
    sent_bytes: bytes that the mirror did not have.
    error: why it failed, None otherwise.
    unreadable: why the newest version that was there cannot be read, None otherwise.
    """

    title: str
    version: Version | None
    created: bool = False
    sent_bytes: int = 0
    error: str | None = None
    unreadable: str | None = None

    def __str__(self) -> str:
        if self.version is None:
            return f"failed     {self.title}: {self.error}"
        number, sent = self.version.number, amounts.size(self.sent_bytes)
        if not self.created:
            again = f", {sent} sent again" if self.sent_bytes else ""
            return f"unchanged  {self.title}: version {number}{again}, sha256 {self.version.sha256}"
        size = amounts.size(self.version.total_bytes)
        after = f"; it comes after one that cannot be read: {self.unreadable}"
        return (
            f"pushed     {self.title}: version {number}, {self.version.files:,} files, {size}, "
            f"{sent} sent, sha256 {self.version.sha256}{after if self.unreadable else ''}"
        )


def found(
    root: Path, artifacts: Iterable[find_artifacts.Artifact] | None
) -> list[tuple[Entry, str, Item]]:
    """Returns the artifacts of a data root; one with an unreadable record has no asset.

    artifacts: those to take; None: the root is searched.
    """
    listed: list[tuple[Entry, str, Item]] = []
    for item in find_artifacts.artifacts(root) if artifacts is None else artifacts:
        try:
            record = provenance.read_record(item.record_path)
        except GristmillError:
            listed.append((Entry.of(root, item), "", (item, None)))
        else:
            listed.append((Entry.of(root, item), record.asset, (item, record)))
    return listed


def of_one_generation(
    item: find_artifacts.Artifact, entry: Entry, work: Callable[[OpenFolder, Record], T]
) -> T:
    """Do something with an artifact's folder and its record; again where a rebuild replaced it.

    work: gets the open folder and the record in it, and reads files through the folder alone.

    Raises BadInput where the record or a file is not what it should be, GristmillError where the
    artifact cannot be pushed, and what `work` raises.
    """
    if reason := wrong_name(entry):
        raise GristmillError(f"{item.folder}: cannot be pushed: {reason}")
    name = item.record_path.relative_to(item.folder).as_posix()
    for attempt in range(_ATTEMPTS):
        folder = OpenFolder(item.folder, "none", name)
        try:
            return work(folder, right_record(folder, name, entry))
        except (GristmillError, OSError):
            # Files of a folder that is being deleted are missing one by one.
            if attempt + 1 == _ATTEMPTS or not folder.replaced():
                raise
        finally:
            folder.close()
    raise AssertionError


def right_record(folder: OpenFolder, name: str, entry: Entry) -> Record:
    """Returns the record of an open folder."""
    folder.read_record()
    record, shown = folder.record, folder.path / name
    if record is None:
        raise BadInput(shown, "is gone")
    if record.digest != record.computed_digest():
        raise BadInput(shown, "was changed after it was written: it is not pushed")
    if record.data_version != provenance.data_version(record.outputs):
        raise BadInput(shown, "its data version is not that of its outputs: it is not pushed")
    if record.artifact != entry.artifact:
        raise BadInput(shown, f"is of {record.artifact}, which was moved: it is not pushed")
    if wrong := next(record_place.wrong_paths(record), None):
        raise BadInput(shown, f"{wrong}: it is not pushed")
    return record


def named_files(
    folder: OpenFolder, name: str, record: Record, data: bytes | None = None
) -> list[tuple[str, int, str]]:
    """Returns path, bytes and sha256 of all files of an artifact, its record first.

    name: path of the record in the folder. data: its bytes; default: those of the file.
    """
    data = record_file.read_bytes(folder.inside / name) if data is None else data
    named = [(name, len(data), sha256_of(data))]
    if (listed := record.inputs_file) is not None:
        named.append((listed.path, listed.bytes, listed.sha256))
    return named + [(output.path, output.bytes, output.sha256) for output in record.outputs]


def damaged(shown: Path) -> BadInput:
    """The error of a file that is not the one in its artifact's record."""
    return BadInput(
        shown,
        "is not the file that its provenance record lists: it is not pushed: build the artifact "
        "again with --rebuild, or bring the file back",
    )
