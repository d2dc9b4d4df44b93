"""Deleting the inputs of a published artifact, as its record announces.

The step comes after the commit, and only where the artifact verifies: until
then the inputs are the only whole copy.
"""

from __future__ import annotations

from pathlib import Path

from gristmill import durable, locks, provenance
from gristmill.builds import Slot
from gristmill.contract import GristmillError
from gristmill.provenance import Record


def delete_inputs(root: Path, record: Record) -> list[str]:
    """Delete those of `record.deleted_inputs` that are still there; a note for each.

    Raises GristmillError, and deletes nothing, where the artifact does not verify
    or an input is no longer the version that it was made from.
    """
    present = [path for path in record.deleted_inputs if (root / path).exists()]
    if not present:
        return []
    folder = root / record.artifact
    if findings := provenance.verify(folder, data_root=root, check_inputs=False):
        raise GristmillError(f"{record.artifact}: its inputs were not deleted: {findings[0]}")
    made_from = {
        item.path: item
        for item in provenance.read_inputs(
            record, provenance.record_path(folder, record.partition, shared=False)
        )
    }
    for path in present:
        found = provenance.published_version(root / path, made_from[path].partition)
        if found != made_from[path].data_version:
            raise GristmillError(
                f"{path}: was built anew since {record.artifact} was made: not deleted"
            )
    for path in present:
        _delete(root, path)
    return [f"deleted {path}: all of it stands in {record.artifact}, verified" for path in present]


def _delete(root: Path, path: str) -> None:
    slot = Slot.at(root, path)
    with locks.held(slot.lock, path):
        # One rename takes it out of sight whole; what a kill then leaves is swept.
        durable.remove_tree(slot.work)
        slot.work.mkdir(parents=True)
        durable.place(root / path, slot.work / "deleted")
        durable.flush((root / path).parent)
        durable.remove_tree(slot.work)
