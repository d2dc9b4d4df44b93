"""From an artifact to the artifacts that it was made from, and on to those these were made from.

See also `check_artifact`: one record against the disk. Source: `docs/publishing.md#verify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gristmill.provenance import record as provenance
from gristmill.provenance.check_artifact import MALFORMED
from gristmill.provenance.find_artifacts import Artifact


@dataclass(frozen=True)
class Used:
    """An artifact that others were made from.

    artifact: its record and folder.
    user: the first of the artifacts asked about that it is an input of, over any number of steps.
    """

    artifact: Artifact
    user: Artifact


def used_by(items: Iterable[Artifact], data_root: Path | None) -> Iterator[Used]:
    """The artifacts that `items` were made from, over any number of steps, each once.

    data_root: where paths of inputs start; None takes it from each artifact's place.

    Those among `items` are left out, and so is an input that is gone, was built again since, or
    has a record that cannot be read: the check of the record that names it reports that.
    """
    todo = [(item, item) for item in items]
    known = {item.record_path for item, _ in todo}
    for item, user in todo:
        for artifact in _inputs(item, data_root):
            if artifact.record_path not in known:
                known.add(artifact.record_path)
                todo.append((artifact, user))
                yield Used(artifact, user)


def _inputs(item: Artifact, data_root: Path | None) -> Iterator[Artifact]:
    """The artifacts that `item` was made from and that are still the version it used."""
    try:
        record = provenance.read_record(item.record_path)
        root = data_root or item.data_root(record)
        inputs = provenance.read_inputs(record, item.record_path)
    except MALFORMED:
        return
    for given in inputs:
        if root is None or given.path is None or given.data_version is None:
            continue
        folder = root / given.path
        try:
            path = provenance.published_record_path(folder, given.partition)
            if path is None or provenance.read_record(path).data_version != given.data_version:
                continue
        except MALFORMED:
            continue
        yield Artifact(folder, path)
