"""Removal: artifacts that are no longer wanted, and what killed builds left.

Removing is one rename into the artifact's slot, so a reader sees all of it or nothing. A kill
during the deletion that follows leaves a slot that `abandoned_slots` finds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.layout import PARTS, VERSIONS, WORK
from gristmill.provenance import Input, Record
from gristmill.provenance.inventory import root_above
from gristmill.publish import atomic_fs, inventory, locks
from gristmill.publish.slot import SLOTS, lock_of_folder, lock_of_slot, slot_of_folder
from gristmill.publish.storage import link_form


def remove_artifact(folder: Path) -> None:
    """Remove the published artifact `folder`, which has a folder to itself, in one rename."""
    with locks.locked(lock_of_slot(slot_of_folder(folder)), folder.name):
        take_away(folder, slot_of_folder(folder))


def delete_inputs(root: Path, record: Record, wanted: Sequence[str]) -> list[str]:
    """Delete those inputs of a published artifact, as its record announces, that are still there.

    The step comes after the commit, and only where the artifact verifies: until then the inputs are
    the only whole copy. Returns a note for each deleted input. Raises GristmillError, and deletes
    nothing more, where the artifact does not verify or an input is no longer the version that the
    artifact was made from; locks.Busy where an input is being built.
    """
    present = [path for path in wanted if (root / path).exists()]
    if not present:
        return []
    folder = root / record.artifact
    if violations := provenance.verify(folder, data_root=root, check_inputs=False):
        raise GristmillError(
            f"{record.artifact}: its inputs were not deleted, since it does not verify: "
            f"{violations[0]}"
        )
    record_path = provenance.record_path(folder, record.partition, shared=False)
    recorded = {item.path: item for item in provenance.read_inputs(record, record_path)}
    for path in present:
        _delete_input(root / path, recorded[path], record)
    return [f"deleted {path}: {record.artifact} holds all of it and verifies" for path in present]


def _delete_input(folder: Path, item: Input, record: Record) -> None:
    with locks.locked(lock_of_slot(slot_of_folder(folder)), str(item.path)):
        if provenance.published_version(folder, item.partition) != item.data_version:
            raise GristmillError(
                f"{item.path}: not deleted, since it was rebuilt after {record.artifact} was made: "
                f"build {record.artifact} again"
            )
        take_away(folder, slot_of_folder(folder))


def take_away(folder: Path, slot: Path) -> None:
    """Remove an artifact's folder by one rename into its slot. The caller holds the lock."""
    inventory.withdraw(folder)
    atomic_fs.remove_tree(slot)
    slot.mkdir(parents=True)
    locks.confirm()
    owner = link_form.renamed_from(folder)
    atomic_fs.take_name(folder, slot / "removed")
    atomic_fs.flush(folder.parent)
    sweep(slot)
    if owner is not None:
        sweep_versions(owner)
    atomic_fs.remove_tree(slot)


def mend(slot: Path) -> None:
    """`link_form.mend` for the folder of a slot, whose lock the caller holds."""
    folder = _linked_folder(slot)
    if folder is not None:
        with _lock_of_commits(folder, slot):
            link_form.mend(folder)


def sweep(slot: Path) -> None:
    """`link_form.sweep` for the folder of a slot, whose lock the caller holds."""
    folder = _linked_folder(slot)
    if folder is not None:
        with _lock_of_commits(folder, slot):
            link_form.sweep(folder, root_above(folder.parent))


def sweep_versions(folder: Path) -> None:
    """Remove the versions of `folder` that no link names, unless a builder is at work on it.

    Its own link may have been renamed.
    """
    with suppress(locks.Busy), locks.locked(lock_of_folder(folder), folder.name):
        link_form.sweep(folder, root_above(folder.parent))


def abandoned_versions(root: Path) -> Iterator[tuple[Path, int]]:
    """Folders below `root` that have versions which no link names, and how many.

    So it is after a link was renamed and built again under its new name. What builders are at work
    on is left out.
    """
    for here, folders, _ in os.walk(root):
        if WORK in folders:
            folders.remove(WORK)
            for store in sorted(Path(here, WORK, VERSIONS).glob("*")):
                folder = Path(here, store.name)
                if not locks.is_locked(lock_of_folder(folder)) and (
                    left := link_form.unnamed(folder)
                ):
                    yield folder, len(left)


def _linked_folder(slot: Path) -> Path | None:
    """The folder that commits of a slot go to, where it has versions; else None."""
    parent, name = slot.parents[2], slot.name.split("+")[0]
    for each in (name, name.rpartition("@")[0]):
        if each and link_form.store_of(parent / each).is_dir():
            return parent / each
    return None


def _lock_of_commits(folder: Path, slot: Path) -> AbstractContextManager[object]:
    """The lock of a shared folder; a folder with one partition has the lock that is held."""
    lock = lock_of_folder(folder)
    if lock == lock_of_slot(slot):
        return nullcontext()
    return locks.locked(lock, folder.name, wait=True)


def abandoned_slots(root: Path) -> Iterator[Path]:
    """Slots below `root` that hold something though no builder is at work on them."""
    for here, folders, _ in os.walk(root):
        if WORK in folders:
            folders.remove(WORK)
            slots = sorted(Path(here, WORK, SLOTS).glob("*"))
            yield from (slot for slot in slots if not locks.is_locked(lock_of_slot(slot)))


def finished_parts(slot: Path) -> int:
    """How many finished parts a slot holds, which the next build reuses."""
    return sum(ledger.with_suffix(".part").exists() for ledger in (slot / PARTS).glob("*/*.json"))


def clean_slot(slot: Path, keep_parts: bool = False) -> None:
    """Remove what a killed build left in its slot.

    Raises locks.Busy if a builder started meanwhile.
    """
    with locks.locked(lock_of_slot(slot), slot.name):
        mend(slot)
        inventory.settle_slot(slot)
        sweep(slot)
        if not (keep_parts and finished_parts(slot)):
            atomic_fs.remove_tree(slot)
            return
        for entry in slot.iterdir():
            if entry.name != PARTS:
                atomic_fs.remove_tree(entry)
