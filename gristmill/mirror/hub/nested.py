"""Nested artifacts in a dataset repository that do not belong into a newer version around them.

Which files of the artifact itself are removed belongs to `push.py`. Source:
`docs/mirror.md#a-dataset-repository-of-the-hub`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path, PurePosixPath

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.mirror.hub.repository import HubRepository
from gristmill.provenance import Record
from gristmill.provenance.inventory import Entry


def left_behind(
    repository: HubRepository, head: str, folder: Path, artifact: str, own: Collection[str]
) -> dict[Entry, list[str]]:
    """Files of nested artifacts in the repository that are not nested in an artifact here.

    Returns, for each of them, those of the files in its record that the repository has. Raises
    HubError where the repository cannot be read, or a record in it.
    """
    there = repository.below(head, artifact)
    found: dict[Entry, list[str]] = {}
    for path in sorted(there):
        place = PurePosixPath(path)
        nested = place.parent.as_posix()
        if place.name != provenance.RECORD or path in own or nested == artifact:
            continue
        record = repository.record(head, there[path])
        standing = folder / place.parent.relative_to(artifact) / provenance.RECORD
        if record.artifact == nested and record.digest != _digest(standing):
            found[Entry(nested)] = [
                each for each in paths(record, provenance.RECORD) if each in there
            ]
    return found


def paths(record: Record, name: str) -> list[str]:
    """Paths in the repository of all files of an artifact.

    name: path of the record in the artifact's folder.
    """
    inside = [name, *(output.path for output in record.outputs)]
    if record.inputs_file is not None:
        inside.append(record.inputs_file.path)
    return [f"{record.artifact}/{path}" for path in inside]


def _digest(standing: Path) -> str | None:
    """Digest of a record in the data root, None where there is none, or an unreadable one."""
    try:
        return provenance.read_record(standing).digest
    except GristmillError:
        return None
