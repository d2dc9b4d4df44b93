"""Which files of a folder that several partitions share belong to which of them, by their records.

A record may be damaged or lost, two may have changed places, and a person or a program may have
put files into the folder. Source: `docs/publishing.md#shared-folders`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.contract import GristmillError
from gristmill.provenance.find_artifacts import Artifact, artifacts_in
from gristmill.provenance.record import Record, read_record
from gristmill.provenance.record_paths import wrong_paths


@dataclass(frozen=True)
class Members:
    """What the records of some partitions say about the files of their folder.

    records: those that can be trusted to say which files are their own.
    files: POSIX paths, relative to the folder, of all files of these, with the records.
    unclear: partitions whose records cannot: files that no record lists may be theirs.
    """

    records: Sequence[Record]
    files: frozenset[str]
    unclear: Sequence[str]


def others(folder: Path, artifact: str, partition: str | None) -> Members:
    """The members of a shared folder, but for one partition.

    folder: need not exist.
    artifact: its path in the data root, which each record should name.
    partition: that is left out.
    """
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
