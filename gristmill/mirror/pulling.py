"""Pulling: a version in a mirror becomes what is published in a data root, by the usual rename.

The record comes along as it is, so that a pulled artifact has the data version, the inputs and the
digest of the one that was pushed. Which versions are pulled belongs to `versions.py`, and how files
are fetched to `fetch.py`. Source: docs/mirror.md#pull.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.contract import GristmillError, Summary
from gristmill.layout import PARTS
from gristmill.mirror import versions
from gristmill.mirror.fetch import Fetcher
from gristmill.mirror.layout import Manifest, Outer, Place, Version, WrongVersion
from gristmill.mirror.store import MirrorError, Store
from gristmill.mirror.versions import Wanted, wanted_versions, waves
from gristmill.provenance import Record, raw_inputs
from gristmill.provenance.inventory import Entry
from gristmill.provenance.raw_inputs import is_as_written
from gristmill.publish import atomic_fs, commit, disk_space, inventory, locks, remove
from gristmill.publish.build import Attempt, Build
from gristmill.publish.slot import Slot
from gristmill.run import amounts
from gristmill.run.progress import SILENT, Progress

PARALLEL: Final = 8
_ARTIFACTS: Final = 4
FETCHED: Final = "fetched"
"""Folder of a slot with what a pull fetched; it becomes the staging folder once it is whole."""


class WouldReplace(GristmillError):
    """Something else is published here, which a pull replaces only where it is asked to."""


@dataclass(frozen=True)
class Pulled:
    """What a pull did with one artifact partition.

    title: the artifact, and the partition of a shared folder.
    version: the version in the mirror that was asked for; None where it cannot be read.
    changed: whether this call published it.
    absent: how many of its inputs are not in this data root.
    error: why it failed, None otherwise.
    skipped: why the version is not for this data root, None otherwise.
    """

    title: str
    version: Version | None
    changed: bool = False
    absent: int = 0
    error: str | None = None
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped is not None:
            return f"skipped    {self.title}: {self.skipped}"
        if self.error is not None or self.version is None:
            return f"failed     {self.title}: {self.error}"
        if not self.changed:
            return f"unchanged  {self.title}: version {self.version.number}"
        size = amounts.size(self.version.total_bytes)
        number, files = self.version.number, self.version.files
        return f"pulled     {self.title}: version {number}, {files:,} files, {size}"


def pull(
    root: Path,
    url: str | Store,
    names: Sequence[str] = (),
    *,
    number: int | None = None,
    sha256: str | None = None,
    replace: bool = False,
    parallel: int = PARALLEL,
    progress: Progress = SILENT,
) -> list[Pulled]:
    """Publish versions of a mirror in a data root, and return what became of each artifact.

    root: the data root; made where there is none.
    url: of the mirror, as for `Store`, or a Store.
    names: which artifacts, as for `versions.chosen`; all by default.
    number: the version of the one artifact partition that is named; default: the newest of each.
    sha256: that its version must have, as `Version.sha256`; default: any. Without a number, the
        newest version that has it is pulled.
    replace: replace an artifact that is published here, has another data version, and is no
        version of this mirror; default False.
    parallel: parts that are fetched at once; default 8.
    progress: gets the stage "pull" in bytes; default silent.

    An artifact that cannot be pulled does not stop the others. Raises MirrorError where the mirror
    cannot be read, GristmillError for a name that means nothing.
    """
    root = root.absolute()
    store = url if isinstance(url, Store) else Store(url, make=False)
    known = versions.numbers(store)
    wanted = wanted_versions(store, known, names, number, sha256, parallel)
    if not wanted and not names:
        raise MirrorError(f"{store.url}: no version of any artifact is here")
    taken = [each.version for each in wanted if each.version and not each.skipped]
    total = sum(version.total_bytes for version in taken)
    with progress.stage("pull", "bytes", total) as stage:
        fetcher = Fetcher(store, parallel, stage)

        def pulled(item: Wanted) -> Pulled:
            return _pulled(root, fetcher, item, known[item.place], replace)

        done: list[Pulled] = []
        try:
            with ThreadPoolExecutor(_ARTIFACTS) as pool:
                for wave in waves(wanted):  # an artifact before those that are nested in it
                    done += pool.map(pulled, wave)
        finally:
            fetcher.close()
    by_title = {each.place.entry.title: each.place.entry for each in wanted}
    # Only now: an input may have come after what was made from it.
    return [
        each
        if each.error or each.skipped
        else replaced(each, absent=absent_inputs(root, by_title[each.title]))
        for each in done
    ]


def _pulled(
    root: Path, fetcher: Fetcher, item: Wanted, numbers: Sequence[int], replace: bool
) -> Pulled:
    """Pull one artifact partition; what became of it, without its inputs."""
    version, title = item.version, item.place.entry.title
    if version is None:
        return Pulled(title, None, error=item.error)
    if item.skipped:
        return Pulled(title, version, skipped=item.skipped)
    try:
        one = _Pull(root, fetcher, item.place, version, numbers)
        return Pulled(title, version, one.pull(replace))
    except (GristmillError, OSError) as error:
        return Pulled(title, version, error=str(error))


class _Pull:
    """Pulls one version of one artifact partition."""

    def __init__(
        self, root: Path, fetcher: Fetcher, place: Place, version: Version, numbers: Sequence[int]
    ) -> None:
        self._root, self._fetcher, self._place = root, fetcher, place
        self._version, self._numbers = version, numbers

    def pull(self, replace: bool) -> bool:
        """Publish the version; returns whether that was needed.

        Raises WouldReplace where something else stands here, locks.Busy where a build of it is
        under way, DiskFull, MirrorError as the store, and GristmillError where a record is wrong.
        """
        standing = standing_record(self._root, self._place.entry, replace)
        folder = self._root / self._place.entry.artifact
        is_equal = standing is not None and standing.data_version == self._version.data_version
        if standing is not None and is_equal and is_whole(folder, standing):
            self._clean_up()
            return False
        self._refuse_other(standing, replace)
        check_outer(self._root, self._version.outer)
        manifest = versions.read_manifest(self._fetcher.store, self._place, self._version)
        build = self._build(manifest)
        slot = Slot.of(build)
        with disk_space.translate_errors(build), locks.locked(slot.lock, build.title):
            remove.mend(slot.work)
            standing = standing_record(self._root, self._place.entry, replace)
            self._refuse_other(standing, replace)
            check_outer(self._root, self._version.outer)
            commit.check_place(build)
            _empty(build, slot)
            disk_space.check(build, slot.work)
            fetched, staged = slot.work / FETCHED, slot.work / "staging"
            record = self._fetched(manifest, fetched)
            # This takes long where much was fetched. Under its new name a killed pull loses it.
            atomic_fs.flush_tree(fetched)
            fetched.rename(staged)
            self._note(record)
            commit.commit(build, slot, staged, record, standing)
            if not (slot.work / PARTS).exists():
                atomic_fs.remove_tree(slot.work)
        return True

    def _note(self, record: Record) -> None:
        """Note that the record tells nothing of this host's raw files, before it is published."""
        entry = self._place.entry
        note = raw_inputs.pulled_note(self._root, entry.artifact, entry.partition)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(record.digest)

    def _clean_up(self) -> None:
        """Remove what a pull left that was killed after its commit; a build under way is let be."""
        for slot in self._place.entry.slots(self._root):
            if slot.exists():
                with suppress(locks.Busy):
                    remove.clean_slot(slot, keep_parts=True)

    def _refuse_other(self, standing: Record | None, replace: bool) -> None:
        """Raise WouldReplace where what stands here would be lost."""
        if standing is None or replace or standing.data_version == self._version.data_version:
            return
        store = self._fetcher.store
        for number in reversed(self._numbers):
            with suppress(WrongVersion):
                version = versions.read(store, self._place, number)
                # Another host may have built the same contents; its record is another one.
                if standing.data_version == version.data_version:
                    return
        raise WouldReplace(
            f"data version {standing.data_version[:12]} is published here, which is no version of "
            f"the mirror; version {self._version.number} there is "
            f"{self._version.data_version[:12]}: push it, or add --replace"
        )

    def _build(self, manifest: Manifest) -> Build:
        """The build that publishing takes; nothing of it is built."""
        version = self._version
        return Build(
            root=self._root,
            artifact=version.artifact,
            asset=version.asset,
            partition=version.partition,
            code_version="",
            config=None,
            inputs=(),
            make=_nothing,
            shared=manifest.shared,
            outer=None if version.outer is None else version.outer.artifact,
            space=manifest.total_bytes,
        )

    def _fetched(self, manifest: Manifest, out: Path) -> Record:
        """Fetch all files and compare them with the record that came along."""
        self._fetcher.fetch(manifest, out)
        title = f"version {self._version.number} of {self._place.entry.title}"
        record = provenance.read_record(out / manifest.record)
        listed = {(file.path, file.bytes, file.sha256) for file in manifest.files}
        recorded = {(output.path, output.bytes, output.sha256) for output in record.outputs}
        if (inputs := record.inputs_file) is not None:
            recorded.add((inputs.path, inputs.bytes, inputs.sha256))
        own = {item for item in listed if item[0] == manifest.record}
        expected = self._place.entry.record(self._root).relative_to(
            self._root / self._place.entry.artifact
        )
        named = (record.artifact, record.asset, record.partition, record.data_version)
        version = self._version
        if (
            named != (version.artifact, version.asset, version.partition, version.data_version)
            or manifest.record != expected.as_posix()
            or record.digest != version.record
            or record.digest != record.computed_digest()
            or record.data_version != provenance.data_version(record.outputs)
            or listed - own != recorded
        ):
            raise MirrorError(f"{title}: its record is not of what the mirror lists: push it again")
        for output in record.outputs:
            os.utime(out / output.path, ns=(output.mtime_ns, output.mtime_ns))
        return record


def _nothing(_: Attempt) -> Summary:
    raise AssertionError("a pulled artifact is not built")


def _empty(build: Build, slot: Slot) -> None:
    """Remove what a killed build left in the slot; what a pull fetched stays, and so do parts."""
    slot.work.mkdir(parents=True, exist_ok=True)
    inventory.settle(build)
    remove.sweep(slot.work)
    for entry in slot.work.iterdir():
        if entry.name not in (PARTS, FETCHED):
            atomic_fs.remove_tree(entry)


def standing_record(root: Path, entry: Entry, ignore_unreadable: bool) -> Record | None:
    """The record that is published, None where there is none.

    ignore_unreadable: None also for a record that cannot be read.

    Raises GristmillError for a record that cannot be read.
    """
    path = entry.record(root)
    if not os.path.lexists(path):
        return None
    try:
        return provenance.read_record(path)
    except GristmillError:
        if ignore_unreadable:
            return None
        raise


def is_whole(folder: Path, record: Record) -> bool:
    """Whether a record and its list of inputs are as they were written, and the files as listed."""
    if not is_as_written(folder, record):
        return False
    for output in record.outputs:
        try:
            found = (folder / output.path).stat()
        except OSError:
            return False
        if (found.st_size, found.st_mtime_ns) != (output.bytes, output.mtime_ns):
            return False
    return True


def check_outer(root: Path, outer: Outer | None) -> None:
    """Raise GristmillError where the artifact that a version is nested in is not here as it was."""
    if outer is None:
        return
    if not provenance.holds_record(root / outer.artifact):
        raise GristmillError(f"is nested in {outer.artifact}: pull that artifact first")
    record = provenance.read_record(root / outer.artifact / provenance.RECORD)
    if record.data_version != outer.data_version:
        raise GristmillError(
            f"is of another data version of {outer.artifact}, {outer.data_version[:12]}; "
            f"{record.data_version[:12]} is published here: pull that artifact, too"
        )


def absent_inputs(root: Path, entry: Entry) -> int:
    """How many inputs of a published artifact are not in the data root; 0 where it is gone."""
    try:
        record = provenance.read_record(entry.record(root))
        inputs = provenance.read_inputs(record, entry.record(root))
    except GristmillError:
        return 0  # `verify` reports it
    return sum(item.path is not None and not (root / item.path).exists() for item in inputs)
