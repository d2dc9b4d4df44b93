"""Deleting the inputs of a published artifact, as its record announces.

The step comes after the commit, and only where the artifact verifies: until
then the inputs are the only whole copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.provenance import Input, Record
from gristmill.publish import atomic_fs, locks
from gristmill.publish.slot import Slot


def delete_inputs(root: Path, record: Record, wanted: Sequence[str]) -> list[str]:
    """Delete those of the artifact's inputs that are `wanted` gone and still there.

    Returns a note for each. Raises GristmillError, and deletes nothing more, where
    the artifact does not verify or an input is no longer the version that it was
    made from.
    """
    present = [path for path in wanted if (root / path).exists()]
    if not present:
        return []
    folder = root / record.artifact
    if findings := provenance.verify(folder, data_root=root, check_inputs=False):
        raise GristmillError(f"{record.artifact}: its inputs were not deleted: {findings[0]}")
    record_path = provenance.record_path(folder, record.partition, shared=False)
    made_from = {item.path: item for item in provenance.read_inputs(record, record_path)}
    for path in present:
        _delete(root, made_from[path], record)
    return [f"deleted {path}: all of it stands in {record.artifact}, verified" for path in present]


def _delete(root: Path, item: Input, record: Record) -> None:
    path = str(item.path)
    slot = Slot.at(root, path)
    with locks.held(slot.lock, path):
        if provenance.published_version(root / path, item.partition) != item.data_version:
            raise GristmillError(
                f"{path}: was built anew since {record.artifact} was made: not deleted"
            )
        # One rename takes it out of sight whole; what a kill then leaves is swept.
        atomic_fs.remove_tree(slot.work)
        slot.work.mkdir(parents=True)
        atomic_fs.place(root / path, slot.work / "deleted")
        atomic_fs.flush((root / path).parent)
        atomic_fs.remove_tree(slot.work)
