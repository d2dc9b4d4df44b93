"""Whether a record belongs where it lies, which files are its own, and which paths it may name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gristmill.contract import BadInput, GristmillError
from gristmill.layout import WORK
from gristmill.provenance import inventory
from gristmill.provenance.find_artifacts import Artifact, artifacts_in
from gristmill.provenance.record import Input, Record, listing, read_record, wrong_path


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

    A folder that was moved or copied may keep its record; not one in the place of another artifact,
    by the inventory of the data root.
    """
    if artifact.partition not in (None, record.partition):
        return f"is of partition {record.partition}: build {artifact.partition} again"
    root = inventory.root_above(artifact.folder)
    if root is not None:
        entry = inventory.Entry.of(root, artifact)
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
