"""What is wrong with the paths that a record names, and with the place where it lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from gristmill.provenance import inventory, record_file
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import Input, Record


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
            if reason := record_file.wrong_path(path):
                yield f"{field}: the path {path!r} {reason}"
    counts = Counter(PurePosixPath(path) for path in named["outputs"])
    for twice in (path for path, count in counts.items() if count > 1):
        yield f"outputs: the path {twice.as_posix()!r} is there more than once"


def wrong_inputs(inputs: Sequence[Input]) -> Iterator[str]:
    """What is wrong with the paths of inputs."""
    for item in inputs:
        if item.path is not None and (reason := record_file.wrong_path(item.path)):
            yield f"the path {item.path!r} {reason}"
