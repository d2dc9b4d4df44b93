"""Pushing published artifacts to a mirror as versions, and pulling a version into a data root.

A push sends all files first, then the records, each of which makes a version: no reader sees a
version of which anything is missing. A pull publishes by the usual rename, with the record as it
is, so that the artifact has the data version, the inputs and the digest of the one that was pushed.
Source: docs/mirror.md#push, docs/mirror.md#pull.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.contract import GristmillError, Summary
from gristmill.keys import refusal
from gristmill.layout import PARTS
from gristmill.mirror import versions
from gristmill.mirror.store import HUB_SCHEME, MOST, MirrorError, Store
from gristmill.mirror.versions import DATA_VERSION, Item, Known, Pushed, Transfer, Version
from gristmill.provenance import Input, Record, find_artifacts, inventory, raw_inputs
from gristmill.provenance.inventory import Entry
from gristmill.provenance.record import is_untouched
from gristmill.publish import atomic_fs, commit, remove
from gristmill.publish.build import Attempt, Build, Slot, check_space, translate_disk_errors
from gristmill.reading.folder import OpenFolder
from gristmill.run import amounts, locks
from gristmill.run.progress import SILENT, Progress

PARALLEL: Final = 8


def push(
    root: Path,
    url: str | Store,
    names: Sequence[str] = (),
    *,
    artifacts: Sequence[find_artifacts.Artifact] | None = None,
    parallel: int = PARALLEL,
    parquet: bool = False,
    progress: Progress = SILENT,
) -> list[Pushed]:
    """Push artifacts of a data root to a mirror, and return what became of each.

    root: the data root.
    url: of the mirror, as for `Store`, or a Store; or of a dataset repository, as for
        `hub.push`.
    names: which artifacts, as for `versions.chosen`; all by default.
    artifacts: those of the data root to choose from; default None: the root is searched.
    parallel: files that are sent at once, and with 32 MiB the memory that is taken; default 8.
    parquet: as for `hub.push`.
    progress: gets the stage "push" in bytes; default silent.

    An artifact that cannot be pushed does not stop the others. Raises MirrorError where the mirror
    cannot be read, GristmillError for a name that means nothing.
    """
    if isinstance(url, str) and url.startswith(HUB_SCHEME):
        from gristmill.mirror import hub

        return hub.push(
            root,
            url,
            names,
            artifacts=artifacts,
            parallel=parallel,
            parquet=parquet,
            progress=progress,
        )
    if parquet:
        raise MirrorError(f"{url}: --parquet is for dataset repositories: hf://datasets/OWNER/NAME")
    store = url if isinstance(url, Store) else Store(url)
    root = root.absolute()
    chosen = versions.chosen(versions.found(root, artifacts), names, str(root))
    above = os.path.commonpath([entry.artifact for entry, _, _ in chosen]) if chosen else ""
    known = versions.listed(store, above)
    total = sum(output.bytes for _, _, (_, record) in chosen if record for output in record.outputs)
    with (
        progress.stage("push", "bytes", total) as stage,
        versions.transferring(store, parallel, stage) as (transfer, at_once),
    ):
        ready = list(at_once.map(lambda each: _prepared(transfer, known, each), chosen))
    return [each if isinstance(each, Pushed) else each() for each in ready]


def _prepared(
    transfer: Transfer, known: Known, chosen: tuple[Entry, str, Item]
) -> Callable[[], Pushed] | Pushed:
    """Send what the mirror lacks of an artifact but for its record; returns what makes the version.

    A rebuild meanwhile is sent instead. What the mirror has, or cannot get, is pushed already.
    """
    entry, _, (item, _) = chosen
    last = known[entry][-1] if entry in known else None

    def send(folder: OpenFolder, record: Record, data: bytes) -> Callable[[], Pushed] | Pushed:
        if last is not None and _is_of(transfer.store, last, record):
            return Pushed(entry.title, str(last))
        if len(data) > MOST:
            raise GristmillError(
                f"{item.record_path}: has {len(data):,} bytes, and a mirror takes {MOST:,}: build "
                "the artifact in several partitions, or in larger files"
            )
        version = Version.after(last, entry, record, data)
        sent = transfer.send(folder, record, version)
        return partial(_finished, transfer.store, version, record, data, sent)

    try:
        return versions.of_one_generation(item, entry, send)
    except (GristmillError, OSError) as error:
        return Pushed(entry.title, error=str(error))


def _is_of(store: Store, last: Version, record: Record) -> bool:
    """Whether a version holds the data of a record, made in the same way of the same."""
    if last.data_version != record.data_version:
        return False
    try:
        return versions.read(store, last)[1].fingerprint == record.fingerprint
    except GristmillError:
        return False  # a right one comes after it


def _finished(store: Store, version: Version, record: Record, data: bytes, sent: int) -> Pushed:
    """Make the version of an artifact whose files are all there. sent: bytes of these."""
    title, files = version.entry.title, versions.files_of(record)
    try:
        store.flush(version.file(file) for file in files)
        store.write(version.key, [data], len(data))
        store.flush([version.key])
    except (GristmillError, OSError) as error:
        return Pushed(title, error=str(error))
    sent += len(data)
    said = f"{version}, {len(files) + 1:,} files, {amounts.size(sent)} sent"
    return Pushed(title, said, True, sent)


FETCHED: Final = "fetched-"
"""Begins the folder of a slot with what a pull fetched of a version, and ends in its sha256; it
becomes the staging folder once it is whole."""


class WouldReplace(GristmillError):
    """Something else is published here, which a pull replaces only where it is asked to."""


class OtherOuter(GristmillError):
    """The artifact that a version is nested in is published here with another data version."""


@dataclass(frozen=True)
class Pulled:
    """What a pull did with one artifact partition.

    title: the artifact, and the partition of a shared folder.
    version: that was asked for.
    changed: whether this call published it.
    absent: how many of its inputs are not in this data root.
    error: why it failed, None otherwise.
    skipped: why the version is not for this data root, None otherwise.
    """

    title: str
    version: Version
    changed: bool = False
    absent: int = 0
    error: str | None = None
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped is not None:
            return f"skipped    {self.title}: {self.skipped}"
        how = "failed" if self.error else "pulled" if self.changed else "unchanged"
        return f"{how:<10} {self.title}: {self.error or self.version}"


def pull(
    root: Path,
    url: str | Store,
    names: Sequence[str] = (),
    *,
    version: str = "",
    sha256: str = "",
    replace: bool = False,
    parallel: int = PARALLEL,
    progress: Progress = SILENT,
) -> list[Pulled]:
    """Publish versions of a mirror in a data root, and return what became of each artifact.

    root: the data root; made where there is none.
    url: of the mirror, as for `Store`, or a Store.
    names: which artifacts, as for `versions.chosen`; all by default.
    version: the data version of the one artifact partition that is named, or its first 12 digits;
        default: the newest version of each.
    sha256: that its version must have, as `Version.sha256`; default: any.
    replace: replace an artifact that is published here, has another data version, and is no
        version of this mirror; default False.
    parallel: files that are fetched at once; default 8.
    progress: gets the stage "pull" in bytes; default silent.

    An artifact that cannot be pulled does not stop the others. Raises MirrorError where the mirror
    cannot be read, GristmillError for a name that means nothing.
    """
    store = url if isinstance(url, Store) else Store(url, make=False)
    known = versions.listed(store)
    if not known and not names:
        raise MirrorError(
            f"{store.url}: no version of any artifact is here (Gristmill 0.9.0 alone reads its own)"
        )
    wanted = versions.wanted_of(store, known, names, version, sha256)
    return pull_versions(
        root, store, known, wanted, replace=replace, parallel=parallel, progress=progress
    )


def pull_versions(
    root: Path,
    store: Store,
    known: Known,
    wanted: Sequence[Version],
    *,
    replace: bool = False,
    parallel: int = PARALLEL,
    progress: Progress = SILENT,
) -> list[Pulled]:
    """As `pull`: publish some versions of those that a mirror has."""
    root = root.absolute()
    artifacts = {each.entry.artifact for each in wanted}
    waves: dict[int, list[Version]] = {}  # an artifact comes before those that are nested in it
    for each in wanted:
        waves.setdefault(len(_above(each) & artifacts), []).append(each)
    done: list[Pulled] = []
    with (
        progress.stage("pull", "bytes", sum(each.size for each in wanted)) as stage,
        versions.transferring(store, parallel, stage) as (transfer, at_once),
    ):

        def pulled(version: Version) -> Pulled:
            title = version.entry.title
            try:
                one = _Pull(root, transfer, version, known[version.entry])
                return Pulled(title, version, one.pull(replace))
            except OtherOuter as error:
                named = {"skipped" if _above(version) & artifacts else "error": str(error)}
                return Pulled(title, version, **named)  # type: ignore[arg-type]
            except (GristmillError, OSError) as error:
                return Pulled(title, version, error=str(error))

        for depth in sorted(waves):
            done += at_once.map(pulled, waves[depth])
    # Only now: an input may have come after what was made from it.
    return [
        each
        if each.error or each.skipped
        else replaced(each, absent=_absent_inputs(root, each.version.entry))
        for each in done
    ]


def _above(version: Version) -> set[str]:
    return {path.as_posix() for path in Path(version.entry.artifact).parents}


class _Pull:
    """Pulls one version of one artifact partition; `known` are all that the mirror has of it."""

    def __init__(
        self, root: Path, transfer: Transfer, version: Version, known: Sequence[Version]
    ) -> None:
        self._root, self._transfer, self._version, self._known = root, transfer, version, known
        self._entry = version.entry

    def pull(self, replace: bool) -> bool:
        """Publish the version; returns whether that was needed.

        Raises WouldReplace where something else stands here, locks.Busy where a build of it is
        under way, DiskFull, MirrorError as the store, and GristmillError where a record is wrong.
        """
        if stands(self._root, self._version):
            # A pull that was killed after its commit left it; a build under way is let be.
            for left in self._entry.slots(self._root):
                if left.exists():
                    with suppress(locks.Busy):
                        remove.clean_slot(left, keep_parts=True)
            return False
        data, record = versions.read(self._transfer.store, self._version)
        outer = versions.outer_of(record)
        build = self._build(record, outer)
        slot = Slot.of(build)
        with translate_disk_errors(build), locks.locked(slot.lock, build.title):
            remove.mend(slot.work)
            standing = self._replaced(replace)
            _check_outer(self._root, outer)
            commit.check_place(build)
            fetched = slot.work / f"{FETCHED}{self._version.sha256}"
            fetched.mkdir(parents=True, exist_ok=True)
            inventory.settle(build.root, build.entry)
            remove.sweep(slot.work)
            for entry in slot.work.iterdir():  # what was fetched stays, and so do parts
                if entry.name not in (PARTS, fetched.name):
                    atomic_fs.remove_tree(entry)
            check_space(build, slot.work)
            self._transfer.fetch(self._version, record, fetched)
            own = fetched / versions.record_name(self._entry)
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(data)
            # This takes long where much was fetched. Under its new name a killed pull loses it.
            atomic_fs.flush_tree(fetched)
            staged = fetched.rename(slot.work / "staging")
            # The record tells nothing of the raw files of this host.
            note = raw_inputs.pulled_note(self._root, self._entry.artifact, self._entry.partition)
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(record.digest)
            commit.commit(build, slot, staged, record, standing)
            if not (slot.work / PARTS).exists():
                atomic_fs.remove_tree(slot.work)
        return True

    def _replaced(self, replace: bool) -> Record | None:
        """The record that stands here. Raises WouldReplace where it would be lost."""
        path = self._entry.record(self._root)
        if not os.path.lexists(path):
            return None
        try:
            standing = provenance.read_record(path)
        except GristmillError:
            if replace:
                return None
            raise
        # Another host may have built the same contents; its record is another one.
        if replace or any(each.data_version == standing.data_version for each in self._known):
            return standing
        raise WouldReplace(
            f"data version {standing.data_version[:12]} is published here, which is no version of "
            f"the mirror; there it is {self._version.data_version[:12]}: push it, or add --replace"
        )

    def _build(self, record: Record, outer: Input | None) -> Build:
        """The build that publishing takes; nothing of it is built."""
        return Build(
            root=self._root,
            artifact=record.artifact,
            asset=record.asset,
            partition=record.partition,
            code_version="",
            config=None,
            inputs=(),
            make=_nothing,
            shared=self._entry.partition is not None,
            outer=None if outer is None else outer.path,
            space=self._version.size,
        )


def _nothing(_: Attempt) -> Summary:
    raise AssertionError("a pulled artifact is not built")


def stands(root: Path, version: Version) -> bool:
    """Whether an artifact of this data version is published, with the recorded sizes and times."""
    folder = root / version.entry.artifact
    try:
        record = provenance.read_record(version.entry.record(root))
        return (
            record.data_version.startswith(version.data_version)
            and raw_inputs.is_as_written(folder, record)
            and all(
                is_untouched(folder / output.path, output.bytes, output.mtime_ns)
                for output in record.outputs
            )
        )
    except (GristmillError, OSError):
        return False


def _check_outer(root: Path, outer: Input | None) -> None:
    """Raise GristmillError where the artifact that a version is nested in is not here as it was."""
    if outer is None or outer.path is None or outer.data_version is None:
        return
    if not provenance.holds_record(root / outer.path):
        raise GristmillError(f"is nested in {outer.path}: pull that artifact first")
    record = provenance.read_record(root / outer.path / provenance.RECORD)
    if record.data_version != outer.data_version:
        raise OtherOuter(
            f"is of another data version of {outer.path}, {outer.data_version[:12]}; "
            f"{record.data_version[:12]} is published here: pull that artifact, too"
        )


def _absent_inputs(root: Path, entry: Entry) -> int:
    """How many inputs of a published artifact are not in the data root; 0 where it is gone."""
    path = entry.record(root)
    try:
        inputs = provenance.read_inputs(provenance.read_record(path), path)
    except GristmillError:
        return 0  # `verify` reports it
    return sum(item.path is not None and not (root / item.path).exists() for item in inputs)


MIRROR: Final = "GRISTMILL_MIRROR"
"""Environment variable with the URL of the mirror of addresses that begin with `mirror://`."""
CACHE: Final = "GRISTMILL_MIRROR_CACHE"
"""Environment variable with the folder of the cache; default `gristmill/mirror` in the user's."""

_FORM = re.compile(
    r"(mirror://|mirror\+(?P<url>[^!]+)!)(?P<name>[^@#]+?)(@(?P<partition>[^@#/]+))?"
    r"(#(?P<version>[^@#/]+))?(//(?P<inside>[^@#]+))?"
)


def cache_folder() -> Path:
    """The folder of the cache; it need not be there."""
    if named := os.environ.get(CACHE):
        return Path(named).absolute()
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(above).absolute() / "gristmill/mirror"


def fetched(address: str) -> Path:
    """The local path of what an address names, pulled into the cache where it is not there.

    Of several processes of a host one pulls, and the others wait. What the cache has of an address
    with a data version needs no mirror, and what it has whole is not written. Raises MirrorError
    for a text of another form, or where the mirror cannot be read or has no such version,
    GristmillError where the pull fails.
    """
    if (found := _FORM.fullmatch(address)) is None:
        raise MirrorError(
            f"{address}: is no address in a mirror: write "
            "mirror://NAME[@PARTITION][#DATA_VERSION][//INSIDE] or mirror+URL!NAME..."
        )
    url = found["url"] or os.environ.get(MIRROR, "")
    if not url:
        raise MirrorError(f"{address}: set {MIRROR} to the URL of the mirror, as of a pull")
    name, partition, pin, inside = found.group("name", "partition", "version", "inside")
    keys = [*name.split("/"), *([partition] if partition else [])]
    if reason := next((reason for key in keys if (reason := refusal(key))), None):
        raise MirrorError(f"{address}: {reason}")
    if inside and {"", ".", ".."} & {*inside.split("/")}:
        raise MirrorError(f"{address}: {inside!r} is no path in the artifact")
    entry, set_of = Entry(name, partition), [url, name, partition, pin]
    if not (pin and DATA_VERSION.fullmatch(pin) and stands(_root(set_of), Version(entry, "", pin))):
        store = Store(url, make=False)
        known = versions.listed(store, name)
        wanted = versions.wanted_of(store, known, [entry.name], pin or "")
        set_of += [] if pin else [each.sha256 for each in wanted]
        root = _root(set_of)
        if not all(stands(root, each) for each in wanted):
            with locks.locked(root.parent / f"{root.name}.lock", address, wait=True):
                for done in pull_versions(root, store, known, wanted, replace=True):
                    if done.error is not None:
                        raise GristmillError(f"{url}: {done.title}: {done.error}")
    return _root(set_of) / name / (inside or "")


def _root(set_of: list[str | None]) -> Path:
    """The data root in the cache for a set of versions."""
    return cache_folder() / provenance.digest(set_of)[:20]
