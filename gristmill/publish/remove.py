"""Removal: artifacts that are no longer wanted, and what killed builds left.

Removing is one rename into the artifact's slot, so a reader sees all of it or nothing. A kill
during the deletion that follows leaves a slot that `abandoned_slots` finds.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.history.versions import NEW
from gristmill.layout import DROPS, HISTORY, PARTS, SLOTS, VERSIONS, WORK, without_dots
from gristmill.provenance import Input, Record, find_artifacts, inventory
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.inventory import Entry, State, entries, root_above
from gristmill.publish import atomic_fs, commit, storage
from gristmill.publish.build import lock_of_folder, lock_of_slot, slot_of_folder
from gristmill.run import locks


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
    owner = storage.renamed_from(folder)
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
            storage.mend(folder)


def sweep(slot: Path) -> None:
    """`link_form.sweep` for the folder of a slot, whose lock the caller holds."""
    folder = _linked_folder(slot)
    if folder is not None:
        with _lock_of_commits(folder, slot):
            storage.sweep(folder, root_above(folder.parent))


def sweep_versions(folder: Path) -> None:
    """Remove the versions of `folder` that no link names, unless a builder is at work on it.

    Its own link may have been renamed.
    """
    with suppress(locks.Busy), locks.locked(lock_of_folder(folder), folder.name):
        storage.sweep(folder, root_above(folder.parent))


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
                    left := storage.unnamed(folder)
                ):
                    yield folder, len(left)


def _linked_folder(slot: Path) -> Path | None:
    """The folder that commits of a slot go to, where it has versions; else None."""
    parent, name = slot.parents[2], slot.name.split("+")[0]
    for each in (name, name.rpartition("@")[0]):
        if each and storage.store_of(parent / each).is_dir():
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


def abandoned_history(root: Path) -> Iterator[tuple[Path, Path]]:
    """What a kill left of versions, each with the lock of its artifact, which no builder holds."""
    history = root / WORK / HISTORY
    for new in sorted(history.rglob(NEW)):
        artifact, _, partition = new.parent.relative_to(history).as_posix().partition("@")
        entry = Entry(artifact, partition or None)
        slot = next(entry.slots(root)) if partition else _slot(root, entry)
        if not locks.is_locked(lock := lock_of_slot(slot)):
            yield new, lock


def clean_history(new: Path, lock: Path) -> None:
    """Remove what `abandoned_history` found. Raises locks.Busy if a builder started meanwhile."""
    with locks.locked(lock, new.parent.name):
        atomic_fs.remove_tree(new)


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


_MOST_NAMED: Final = 20


def at_path(path: Path, partition: str | None = None) -> tuple[Path, Entry]:
    """The data root, and the artifact at a path, published or missing."""
    path = without_dots(path)
    root = root_above(path) or find_artifacts.recorded_root(path)
    if root is None or root == path:
        raise GristmillError(
            f"{path}: no artifact is here, and no asset of this name has one: name an artifact's "
            "folder, or an asset as `gristmill ls` prints it"
        )
    artifact = path.relative_to(root).as_posix()
    known = {entry for entry in _known(root, path) if entry.artifact == artifact}
    if not known:
        raise GristmillError(f"{path}: no artifact is here, and the inventory names none")
    return root, _one(known, partition, str(path))


def named(
    target: str, partition: str | None = None, *, data_root: Path = Path()
) -> tuple[Path, Entry]:
    """The data root, and the artifact that a person names.

    target: an asset of which something is published in `data_root`, or the path of an artifact.
    partition: its key; None (the default) where there is only one.
    data_root: where assets are looked for; default: the current folder.

    Raises GristmillError where there is no such artifact, or several.
    """
    root = data_root.absolute()
    published = {} if Path(target).is_dir() else _of_asset(root, target)
    if not published:
        return at_path(Path(target), partition)
    if partition in published:
        return root, published[partition]
    if partition is None and len(published) == 1:
        return root, next(iter(published.values()))
    keys = ", ".join(sorted(str(key) for key in published)[:20])
    reason = "name one with --partition" if partition is None else f"there is no {partition!r}"
    raise GristmillError(f"{target} has {len(published)} published partitions: {keys}: {reason}")


def _of_asset(root: Path, asset: str) -> dict[str | None, Entry]:
    """The published artifacts of an asset by partition."""
    published = {}
    for item in find_artifacts.artifacts(root):
        try:
            record = provenance.read_record(item.record_path)
        except GristmillError:
            continue  # `verify` reports it; it can be removed by its path
        if record.asset == asset:
            published[record.partition] = Entry.of(root, item)
    return published


def dependents(root: Path, entries: Sequence[Entry]) -> list[Entry]:
    """What was made from some artifacts of a data root, directly or not: each before its inputs.

    What is nested in one of them, or in what was made from it, goes with it and is left out.
    """
    items = find_artifacts.artifacts(root)
    read = [(Entry.of(root, item), given) for item, _, given in find_artifacts.readable(items)]
    seen, found = set(entries), list[Entry]()

    def follow(entry: Entry) -> None:
        for made, inputs in read:
            is_new = made not in seen and not _holds(entry, made.artifact, made.partition)
            if is_new and any(
                given.data_version is not None and _holds(entry, str(given.path), given.partition)
                for given in inputs
            ):
                seen.add(made)
                follow(made)
                found.append(made)

    for entry in entries:
        follow(entry)
    return found


def _holds(entry: Entry, artifact: str, partition: str | None) -> bool:
    """Whether an artifact partition is an entry, or nested in it."""
    if entry.partition is not None:
        return (entry.artifact, entry.partition) == (artifact, partition)
    return PurePosixPath(artifact).is_relative_to(entry.artifact)


def refuse_dependents(entries: Sequence[Entry], made: Sequence[Entry]) -> None:
    """Raise GristmillError where something was made from what is to be removed, and stays."""
    if not made:
        return
    named = ", ".join(entry.title for entry in made[:_MOST_NAMED])
    more = f" and {len(made) - _MOST_NAMED:,} more" if len(made) > _MOST_NAMED else ""
    raise GristmillError(
        f"{', '.join(entry.title for entry in entries)}: not removed, since other artifacts were "
        f"made from it: {named}{more}. Add --with-dependents to remove them, too"
    )


@dataclass(frozen=True)
class Made:
    """A published artifact, and what a person calls it to build it again."""

    entry: Entry
    asset: str
    partition: str | None


def made_from(root: Path, raw: Collection[tuple[str, str]]) -> tuple[list[Made], list[Made]]:
    """The artifacts of a data root that were made from some raw files alone, and from others, too.

    Vocabularies do not count. Both lists have an artifact after all that it was made from. What a
    record does not say any more, since an input was built again or is gone, counts as another file.
    """
    read: dict[tuple[str, str | None], tuple[Made, Record, Sequence[Input]]] = {}
    for item, record, inputs in find_artifacts.readable(find_artifacts.artifacts(root)):
        made = Made(Entry.of(root, item), record.asset, record.partition)
        read[made.entry.artifact, record.partition] = made, record, inputs
    kinds: dict[tuple[str, str | None], set[bool]] = {}

    def kinds_of(key: tuple[str, str | None]) -> set[bool]:
        if key not in kinds:
            found = set()
            for given in read[key][2]:
                inner = str(given.path), given.partition
                if str(given.asset).startswith("tokenizers/"):
                    continue
                is_raw = str(given.path).startswith(f"{DROPS}/") and given.is_of_drop
                if given.data_version is None and not is_raw:
                    continue  # a file of an artifact, which is named, too, or of a set
                if given.data_version is None:
                    found.add((str(given.path), str(given.sha256)) in raw)
                elif inner in read and read[inner][1].data_version == given.data_version:
                    found |= kinds_of(inner)
                else:
                    found.add(False)
            kinds[key] = found
        return kinds[key]

    for key in read:
        kinds_of(key)
    alone = [read[key][0] for key, found in kinds.items() if found == {True}]
    return alone, [read[key][0] for key, found in kinds.items() if found == {True, False}]


def remove_published(root: Path, entry: Entry) -> None:
    """Remove one artifact partition on purpose, in one rename.

    root, entry: as `named` returns them. An artifact that is gone already is
        only noted as removed; artifacts nested in it go with it.

    Raises locks.Busy where a builder is at work on it. Files that no record lists are kept beside
    a shared folder (`commit.link_others`), also those of a partition whose record is damaged.
    """
    if entry.partition is not None:
        _remove_partition(root, entry)
        return
    folder = root / entry.artifact
    slot = _slot(root, entry)
    with locks.locked(lock_of_slot(slot), entry.title):
        mend(slot)
        if folder.exists():
            for item, record, _ in find_artifacts.readable(find_artifacts.artifacts(folder)):
                commit.keep(root, item, record)
            take_away(folder, slot)
        else:
            inventory.take_in(root)
            inventory.forget(root, entry)


def _remove_partition(root: Path, entry: Entry) -> None:
    """Commit the shared folder without the files of one partition."""
    folder = root / entry.artifact
    shared = slot_of_folder(folder)
    slot = shared.with_name(f"{shared.name}@{entry.partition}")
    with locks.locked(lock_of_slot(slot), entry.title):
        mend(slot)
        inventory.take_in(root)
        if not entry.is_published(root):
            inventory.forget(root, entry)
            return
        item = Artifact(folder, entry.record(root))
        with locks.locked(lock_of_slot(shared), entry.artifact, wait=True):
            commit.keep(root, item, inventory.own_record(item, entry.artifact))
            inventory.forget(root, entry)
            atomic_fs.remove_tree(slot)
            slot.mkdir(parents=True)
            left = slot / "left"
            commit.link_others(
                item,
                left,
                inventory.own_record(item, entry.artifact),
                inventory.others(folder, entry.artifact, entry.partition),
            )
            atomic_fs.flush_tree(left)
            locks.confirm()
            if any(left.iterdir()):
                if storage.is_used(slot):
                    storage.flip(left, folder)
                else:
                    atomic_fs.exchange(left, folder)
            else:
                atomic_fs.take_name(folder, slot / "removed")
            atomic_fs.flush(folder.parent)
            storage.sweep(folder, root)
            atomic_fs.remove_tree(slot)


def _slot(root: Path, entry: Entry) -> Path:
    """The slot of an artifact with a folder to itself, nested in another one or not."""
    parts = entry.artifact.split("/")
    for depth in range(1, len(parts)):
        outer = root.joinpath(*parts[:depth])
        if provenance.holds_record(outer):
            return outer.parent / WORK / SLOTS / f"{outer.name}+{'+'.join(parts[depth:])}"
    return slot_of_folder(root / entry.artifact)


def _known(root: Path, path: Path) -> Iterator[Entry]:
    """What is published in a folder, and what its inventory says should be there."""
    yield from (Entry.of(root, item) for item in find_artifacts.artifacts_in(path))
    yield from (entry for entry, state in entries(root, path) if state is not State.REMOVED)


def _one(known: set[Entry], partition: str | None, where: str) -> Entry:
    keys = sorted(entry.partition for entry in known if entry.partition is not None)
    if not keys:
        if partition is not None:
            raise GristmillError(f"{where}: is one artifact: leave --partition out")
        return next(iter(known))
    if partition is None:
        raise GristmillError(
            f"{where}: {len(keys)} partitions share this folder ({', '.join(keys[:20])}): "
            "name one with --partition"
        )
    for entry in known:
        if entry.partition == partition:
            return entry
    raise GristmillError(f"{where}: there is no partition {partition!r}")
