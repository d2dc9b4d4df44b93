"""The commit: a staged artifact becomes the published one by one rename."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.history.versions import NEW, kept, place_of, settings_of, write_into
from gristmill.layout import UNLISTED, WORK
from gristmill.provenance import Record, inventory
from gristmill.provenance.find_artifacts import Artifact, artifacts_in, readable
from gristmill.provenance.inventory import Entry, Members
from gristmill.publish import atomic_fs, stamps, storage
from gristmill.publish.build import Build, Slot
from gristmill.run import locks
from gristmill.run.progress import SILENT, Progress


def check_place(build: Build) -> None:
    """Refuse to replace a folder without a record or a link, and to nest without `outer`.

    An empty folder that partitions share is taken.
    """
    outer = build.folder if build.outer is None else build.root / build.outer
    for folder in (outer, build.folder):
        if folder.is_symlink() and storage.version_of(folder) is None:
            # An exchange would replace the link, and leave the files behind it without a record.
            raise GristmillError(
                f"{folder}: is a link to {folder.readlink()}: it is read, but not built again. "
                "Remove the link to build here; move the folder back to keep it"
            )
    if build.outer is not None:
        provenance.read_record(build.root / build.outer / provenance.RECORD)
    for above in build.folder.relative_to(build.root).parents:
        if str(above) not in (".", build.outer) and provenance.holds_record(build.root / above):
            raise GristmillError(
                f"{build.folder}: is inside the artifact {above}: name that artifact as `outer`, "
                "or its next build loses this one"
            )
    if not build.folder.exists() or build.record_path.exists():
        return
    # In this order: the first of the other partitions may be published between the two.
    if build.shared and (not any(build.folder.iterdir()) or provenance.holds_record(build.folder)):
        return
    raise GristmillError(
        f"{build.folder}: this folder has no provenance record and is not overwritten: "
        "move it away and build again"
    )


def commit(
    build: Build,
    slot: Slot,
    staged: Path,
    record: Record,
    replaced: Record | None,
    progress: Progress = SILENT,
) -> list[str]:
    """Make the staged artifact the published one, in one rename.

    replaced: the published record that `record` replaces, None where there is none.
    progress: gets the stage "publish" in files, and for whom a shared folder's commit waits;
        default silent.
    """
    files = len(record.outputs)
    with progress.stage("publish", "files", files) as stage:
        notes = _commit(build, slot, staged, record, replaced, progress)
        stage.advance(files)
    return notes


def _commit(
    build: Build,
    slot: Slot,
    staged: Path,
    record: Record,
    replaced: Record | None,
    progress: Progress,
) -> list[str]:
    build.folder.parent.mkdir(parents=True, exist_ok=True)
    if build.shared:
        with locks.locked(slot.folder_lock, build.artifact, wait=True, progress=progress):
            locks.confirm()
            whole = _whole(staged)
            storage.mend(build.folder)
            members = inventory.others(build.folder, build.artifact, build.partition)
            before = stamps.unchanged(build.folder, members.records)
            item = Artifact(build.folder, build.record_path)
            if replaced is not None:
                replaced = inventory.own_record(item, build.artifact)
            notes = keep(build.root, item, replaced, record.data_version)
            notes += _join(build, staged, whole, replaced, members)
            _swap_in(whole, build, slot)
            atomic_fs.remove_tree(staged)
            # Links and their removal change the files' inode times, but not what is in them.
            stamps.keep(build.folder, before, [output.path for output in record.outputs])
    else:
        item = Artifact(build.folder, build.record_path)
        notes = keep(build.root, item, replaced, record.data_version)
        notes += _carry_nested(build, staged, record, replaced)
        _swap_in(staged, build, slot)
    return notes


def keep(root: Path, item: Artifact, record: Record | None, now: str | None = None) -> list[str]:
    """Keep what traces a published version that is to be replaced, and remove the oldest kept ones.

    record: of the version; nothing is kept of None, nor of one with the data version `now`. The
    caller holds the lock of the artifact. A kill leaves the version current and perhaps kept, too.
    Returns notes. Raises OSError where there is no room.
    """
    entry, most, notes = Entry.of(root, item), settings_of(root).keep, list[str]()
    place = place_of(root, entry)
    work = place / NEW
    if most and record is not None and record.data_version != now:
        target = place / record.data_version
        atomic_fs.remove_tree(work)
        try:
            notes += write_into(work / "new", item, record, root)
            atomic_fs.flush_tree(work / "new")
        except BaseException:
            atomic_fs.remove_tree(work)
            raise
        locks.confirm()
        if target.exists():  # it was published before, too
            target.rename(work / "old")
        (work / "new").rename(target)
        atomic_fs.flush_upwards(place, root)
        atomic_fs.remove_tree(work)
    elif most and record is None and item.record_path.exists():
        notes.append("nothing was kept of the replaced version, as its record cannot be read")
    found, _ = kept(root, entry)
    for version in found[: max(len(found) - most, 0)]:
        work.mkdir(exist_ok=True)
        version.folder.rename(work / "old")
        atomic_fs.remove_tree(work)
    return notes


def _swap_in(staged: Path, build: Build, slot: Slot) -> None:
    atomic_fs.flush_tree(staged)
    linked = storage.is_used(slot.work)
    outermost = build.root / (build.outer or build.artifact)
    if linked and build.outer is not None and build.folder.exists():
        staged = _outer_with(staged, build, _whole(staged))
    locks.confirm()
    inventory.begin(build.root, build.entry)
    if linked and (build.outer is None or build.folder.exists()):
        storage.flip(staged, outermost)
    elif os.path.lexists(build.folder):  # also a link to a version that a person deleted
        locks.confirm()
        atomic_fs.exchange(staged, build.folder)
    else:
        locks.confirm()
        atomic_fs.take_name(staged, build.folder)
    atomic_fs.flush_upwards(build.folder.parent, build.root, staged.parent)
    inventory.confirm(build.root, build.entry)
    atomic_fs.remove_tree(staged)
    storage.sweep(outermost, build.root)


def _whole(staged: Path) -> Path:
    """The next version of a folder, beside the staging folder and as much its builder's own."""
    return staged.with_name(staged.name.replace("staging", "whole", 1))


def _outer_with(staged: Path, build: Build, whole: Path) -> Path:
    """Make `whole`: links to the outer artifact's files, with the nested one replaced."""
    assert build.outer is not None
    outer = build.root / build.outer
    inside = build.folder.relative_to(outer)
    replaced = (f"{inside.as_posix()}/{path}" for path in atomic_fs.files_below(build.folder))
    atomic_fs.link_tree(outer, whole, leave_out=frozenset(replaced))
    (whole / inside).parent.mkdir(parents=True, exist_ok=True)
    staged.rename(whole / inside)
    atomic_fs.flush_tree(whole)
    return whole


def _join(
    build: Build, staged: Path, whole: Path, replaced: Record | None, members: Members
) -> list[str]:
    """Make `whole`: links to the shared folder's files, with this partition's files replaced."""
    new = list(atomic_fs.files_below(staged))
    if taken := next((path for path in new if path in members.files), None):
        raise GristmillError(
            f"{build.title}: the file {taken} belongs to another partition of "
            f"{build.artifact}: the builder must give it another name"
        )
    notes = []
    if build.folder.exists():
        item = Artifact(build.folder, build.record_path)
        notes = link_others(item, whole, replaced, members, frozenset(new))
    else:
        whole.mkdir()
    for path in new:
        target = whole / path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(staged / path, target)
    return notes


def link_others(
    item: Artifact,
    whole: Path,
    replaced: Record | None,
    members: Members,
    new: frozenset[str] = frozenset(),
) -> list[str]:
    """Make `whole`: links to the files of a shared folder, but for those of one partition.

    The caller fills the paths of `new`. A file that no record lists may belong to a partition whose
    record is damaged. Where there is none, it is kept beside the folder, in `.gristmill/unlisted/`,
    since nobody can prove an input that has such a file. Returns a note about those.
    """
    own = {item.record_path.relative_to(item.folder).as_posix()}
    if replaced is not None:
        own.update(inventory.files_of(item, replaced))
    present = set(atomic_fs.files_below(item.folder))
    unknown = present - members.files - own
    aside = sorted(unknown if not members.unclear else unknown & new)
    atomic_fs.link_tree(
        item.folder, whole, leave_out=frozenset((own - members.files) | set(aside) | new)
    )
    if not aside:
        return []
    kept = item.folder.parent / WORK / UNLISTED / item.folder.name
    for path in aside:
        _keep(item.folder / path, kept, path)
    more = f" and {len(aside) - 5} more" if len(aside) > 5 else ""
    return [f"moved to {kept}, as no record lists them: {', '.join(aside[:5])}{more}"]


def _keep(file: Path, kept: Path, path: str) -> None:
    """Link a file to a path in `kept`, in place of what an earlier commit left in its way."""
    for above in reversed(PurePosixPath(path).parents[:-1]):
        if not (kept / above).is_dir():
            (kept / above).unlink(missing_ok=True)
    target = kept / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        atomic_fs.remove_tree(target)
    target.unlink(missing_ok=True)
    os.link(file, target)


def _nested(folder: Path) -> Iterator[Path]:
    """The topmost folders below `folder` that have a record of their own."""
    if not folder.exists():
        return
    for entry in sorted(path for path in folder.iterdir() if path.is_dir()):
        if provenance.holds_record(entry):
            yield entry
        else:
            yield from _nested(entry)


def _carry_nested(build: Build, staged: Path, record: Record, replaced: Record | None) -> list[str]:
    """Keep the nested artifacts of an unchanged artifact, remove those of a changed one."""
    names = [path.relative_to(build.folder).as_posix() for path in _nested(build.folder)]
    if replaced is None or replaced.data_version != record.data_version:
        for name in names:
            for item, nested, _ in readable(artifacts_in(build.folder / name)):
                keep(build.root, item, nested)
        for name in names:  # after all of them are kept, which a full disk can stop
            inventory.withdraw(build.folder / name)
        return [f"removed {name}: it was made from the replaced version" for name in names]
    for name in names:
        (staged / name).parent.mkdir(parents=True, exist_ok=True)
        atomic_fs.link_tree(build.folder / name, staged / name)
    return [f"kept {name}: the data that it was made from did not change" for name in names]
