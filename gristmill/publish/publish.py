"""Publishing: an artifact partition appears whole or not at all.

A build happens in a staging folder on the same file system, is checked, gets
its record, is flushed to disk and then committed by one rename. A kill at any
instant leaves what was published before or what is published now, and the
next build sweeps what the killed one left. Source:
`docs/publishing.md#the-steps`.

For an artifact `<parent>/<name>`, all that is not published lies in
`<parent>/.gristmill/`: lock files in `locks/`, and in `slots/` one folder for
each artifact, partition of a shared folder or nested artifact under way, with
`parts/<key>/` and the staging folder of the attempt.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from pathlib import Path

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.layout import PARTS
from gristmill.provenance import Input, InputsFile, Output, environment
from gristmill.publish import atomic_fs, commit, delete_inputs, disk_space, locks, write_record
from gristmill.publish.build import Attempt, Build, DiskFull, InputChanged, LawsBroken, Published
from gristmill.publish.slot import Slot
from gristmill.run.parts import PartStore

__all__ = ["Attempt", "Build", "DiskFull", "InputChanged", "LawsBroken", "Published", "publish"]


def publish(build: Build, anew: bool = False) -> Published:
    """Build, check, record and commit one artifact partition, unless it stands already.

    An artifact whose record has the same fingerprint and whose files have the
    recorded sizes and times is left alone, unless it is to be built `anew`.

    Raises locks.Busy where another builder is at work, LawsBroken, InputChanged
    and DiskFull as they say, GristmillError where a folder without a record
    stands in the way, and whatever the builder raises. In every case what was
    published before is untouched. Inputs that the build deletes go last, and a
    kill before that is made up for by the next call.
    """
    published = _publish(build, anew)
    deleted = delete_inputs.delete_inputs(build.root, published.record, build.deletes)
    return replace(published, notes=[*published.notes, *deleted])


def _publish(build: Build, anew: bool) -> Published:
    slot = Slot.of(build)
    if not anew and not slot.work.exists() and (standing := _standing(build)):
        return standing
    with disk_space.exhaustion_told(build), locks.held(slot.lock, build.title):
        if not anew and (standing := _standing(build)):
            atomic_fs.remove_tree(slot.work)  # left by one that was killed after its commit
            return standing
        return _build(build, slot)


def _standing(build: Build) -> Published | None:
    """What is published, if it is what `build` would make and its files are intact."""
    if not build.record_path.exists():
        return None
    record = provenance.read_record(build.record_path)
    if record.fingerprint != build.fingerprint or record.digest != record.computed_digest():
        return None
    if not set(build.deletes) <= set(record.deleted_inputs):
        return None
    if record.inputs_file and not _has_size(build, record.inputs_file):
        return None
    if not all(_untouched(build, output) for output in record.outputs):
        return None
    return Published(
        build.folder, record, rebuilt=False, notes=["nothing to do: same inputs, config and code"]
    )


def _untouched(build: Build, output: Output) -> bool:
    try:
        stat = (build.folder / output.path).stat()
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (output.bytes, output.mtime_ns)


def _has_size(build: Build, listed: InputsFile) -> bool:
    try:
        return (build.folder / listed.path).stat().st_size == listed.bytes
    except OSError:
        return False


def _build(build: Build, slot: Slot) -> Published:
    _check_place(build)
    parts = PartStore(slot.work / PARTS / build.parts_key)
    attempt = Attempt(slot.work / "staging", build.folder, parts, build.fingerprint)
    started = time.monotonic()
    environment.reset_peak_memory()
    try:
        if slot.work.exists():
            _sweep(slot, parts)
        else:
            slot.work.mkdir(parents=True)
        disk_space.check(build, slot.work)
        summary = build.make(attempt)
        _check_inputs_unchanged(build)
        if violations := list(build.laws(attempt.out)):
            raise LawsBroken(build.title, violations)
        record = write_record.write_record(build, attempt.out, summary, time.monotonic() - started)
        notes = commit.commit(build, slot, attempt.out, record)
    except BaseException as error:
        # The frames may hold a pool that still writes; letting go of it ends it.
        traceback.clear_frames(error.__traceback__)
        _clear(slot, parts, keep_parts=_worth_keeping(error))
        raise
    atomic_fs.remove_tree(slot.work)
    return Published(build.folder, record, rebuilt=True, notes=notes)


def _check_place(build: Build) -> None:
    """Refuse to replace what Gristmill did not make, and to nest without saying so."""
    if build.outer is not None:
        provenance.read_record(build.root / build.outer / provenance.RECORD)
    for above in build.folder.relative_to(build.root).parents:
        if str(above) not in (".", build.outer) and provenance.holds_record(build.root / above):
            raise GristmillError(
                f"{build.folder}: lies inside the artifact {above}: name it as `outer`, "
                "or the next build of that one loses it"
            )
    if not build.folder.exists() or build.record_path.exists():
        return
    if build.shared and provenance.holds_record(build.folder):
        return
    raise GristmillError(
        f"{build.folder}: something stands here that has no provenance record: "
        "move it away, it will not be overwritten"
    )


def _sweep(slot: Slot, parts: PartStore) -> None:
    """Remove what earlier attempts left in the slot, but keep the finished `parts`.

    The lock is held: nothing in the slot belongs to a living builder.
    """
    for entry in slot.work.iterdir():
        if entry != parts.folder.parent:
            atomic_fs.remove_tree(entry)
    if not parts.folder.parent.exists():
        return
    for entry in parts.folder.parent.iterdir():
        if entry != parts.folder:
            atomic_fs.remove_tree(entry)
    if parts.folder.exists():
        parts.sweep()


def _clear(slot: Slot, parts: PartStore, keep_parts: bool) -> None:
    """Remove what a failed attempt leaves; all of it where there is no part to keep."""
    if keep_parts and parts.folder.exists():
        _sweep(slot, parts)
        if any(parts.folder.iterdir()):
            return
    atomic_fs.remove_tree(slot.work)


def _worth_keeping(error: BaseException) -> bool:
    """Not parts that fill the disk, nor those made from an input that changed meanwhile."""
    return not (isinstance(error, InputChanged | DiskFull) or disk_space.exhausted(error))


def _check_inputs_unchanged(build: Build) -> None:
    for item in build.inputs:
        if item.path is None:
            continue
        if item.data_version is not None:
            found = provenance.published_version(build.root / item.path, item.partition)
            if found != item.data_version:
                raise InputChanged(f"{item.path}: built anew while it was being read: build again")
        elif item.mtime_ns is not None:
            _check_file_unchanged(build.root / item.path, item)


def _check_file_unchanged(path: Path, item: Input) -> None:
    try:
        stat = path.stat()
    except OSError as error:
        raise InputChanged(f"{item.path}: gone while it was being read: {error}") from error
    if (stat.st_size, stat.st_mtime_ns) != (item.bytes, item.mtime_ns):
        raise InputChanged(
            f"{item.path}: changed while it was being read: build again once it is complete"
        )
