"""What is published and may be pushed: artifacts of a data root, and the record of an open one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.mirror.versions import parsed_record, record_name, wrong_name, wrong_record
from gristmill.provenance import Record, find_artifacts, record_file
from gristmill.provenance.inventory import Entry
from gristmill.reading.folder import OpenFolder

T = TypeVar("T")
Item = tuple[find_artifacts.Artifact, Record | None]
"""An artifact, and its record where it can be read."""

_ATTEMPTS: Final = 20


@dataclass(frozen=True)
class Pushed:
    """What a push did with one artifact partition.

    title: the artifact, and the partition of a shared folder.
    said: the version or the commit that holds it, and what a person should know of it.
    created: whether this call made that.
    sent_bytes: bytes that the mirror did not have.
    error: why it failed, None otherwise.
    """

    title: str
    said: str = ""
    created: bool = False
    sent_bytes: int = 0
    error: str | None = None

    def __str__(self) -> str:
        how = "failed" if self.error else "pushed" if self.created else "unchanged"
        return f"{how:<10} {self.title}: {self.error or self.said}"


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
    item: find_artifacts.Artifact, entry: Entry, work: Callable[[OpenFolder, Record, bytes], T]
) -> T:
    """Do something with an artifact's folder and its record; again where a rebuild replaced it.

    work: gets the open folder, the record in it and that record's bytes, and reads files through
        the folder alone.

    Raises BadInput where the record or a file is not what it should be, GristmillError where the
    artifact cannot be pushed, and what `work` raises.
    """
    if reason := wrong_name(entry):
        raise GristmillError(f"{item.folder}: cannot be pushed: {reason}")
    name = record_name(entry)
    for attempt in range(_ATTEMPTS):
        folder = OpenFolder(item.folder, "none", name)
        try:
            data = record_file.read_bytes(folder.inside / name)
            record = parsed_record(data, item.record_path)
            if reason := wrong_record(record, entry):
                raise BadInput(item.record_path, f"{reason}: it is not pushed")
            return work(folder, record, data)
        except (GristmillError, OSError):
            # Files of a folder that is being deleted are missing one by one.
            if attempt + 1 == _ATTEMPTS or not folder.replaced():
                raise
        finally:
            folder.close()
    raise AssertionError


def damaged(shown: Path) -> BadInput:
    """The error of a file that is not the one in its artifact's record."""
    return BadInput(
        shown,
        "is not the file that its provenance record lists: it is not pushed: build the artifact "
        "again with --rebuild, or bring the file back",
    )
