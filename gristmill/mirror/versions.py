"""The versions in a mirror: their names, what their records say, and which of them is meant.

A version is the record of an artifact partition. The name of that object says when it was pushed,
the data version, the sha256 and the bytes of all files, so that a listing tells all versions.
Source: docs/mirror.md#layout.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Final, TypeVar

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import named_reader
from gristmill.keys import refusal
from gristmill.mirror.store import PIECE, MirrorError, Store
from gristmill.provenance import Input, Output, Record, find_artifacts
from gristmill.provenance.inventory import Entry
from gristmill.provenance.record import READABLE_VERSIONS, read_bytes, wrong_path
from gristmill.reading.folder import OpenFolder
from gristmill.run import amounts
from gristmill.run.progress import Stage

T = TypeVar("T")

DATA_VERSION: Final = re.compile(r"[0-9a-f]{12,64}")
"""How a person names a data version: by its first digits."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(
    r"(?P<pushed>[0-9]{20})-(?P<data>[0-9a-f]{64})-(?P<sha256>[0-9a-f]{64})-(?P<size>0|[1-9][0-9]{0,17})"
)
_MOST: Final = 1 << 63


@dataclass(frozen=True)
class Version:
    """One version of an artifact partition.

    pushed: when, as 20 digits from the year to the microsecond, in UTC.
    sha256: of the record; it pins all that a pull publishes.
    size: bytes of all files.
    """

    entry: Entry
    pushed: str
    data_version: str = ""
    sha256: str = ""
    size: int = 0

    @classmethod
    def of(cls, key: str) -> Version | None:
        """The version that an object is, None for any other object."""
        above, _, place = key.removesuffix(".json").rpartition("/@")
        partition, _, name = place.partition("/")
        entry = Entry(above.removeprefix("artifacts/"), partition or None)
        if key != f"artifacts/{entry.artifact}/@{place}.json" or wrong_name(entry):
            return None
        if (found := _NAME.fullmatch(name)) is None:
            return None
        return cls(entry, found["pushed"], found["data"], found["sha256"], int(found["size"]))

    @classmethod
    def after(cls, last: Version | None, entry: Entry, record: Record, data: bytes) -> Version:
        """The version that a push makes of a record, whose bytes are `data`, after the last one."""
        now = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")
        pushed = now if last is None else max(now, f"{int(last.pushed) + 1:020}")
        sha256, total = hashlib.sha256(data).hexdigest(), bytes_of(record, data)
        return cls(entry, pushed, record.data_version, sha256, total)

    @property
    def key(self) -> str:
        """Of the record."""
        name = f"{self.pushed}-{self.data_version}-{self.sha256}-{self.size}"
        return f"artifacts/{self.entry.artifact}/@{self.entry.partition or ''}/{name}.json"

    def file(self, file: Output) -> str:
        """Key of a file: payload may belong to other versions, too."""
        if file.payload:
            return f"objects/{file.sha256[:2]}/{file.sha256}"
        return f"records/{self.sha256}/{file.sha256}"

    def __str__(self) -> str:
        return (
            f"data version {self.data_version[:12]}, {amounts.size(self.size)}, "
            f"sha256 {self.sha256}"
        )


Known = Mapping[Entry, Sequence[Version]]
"""The versions of each artifact partition, the oldest first."""


def listed(store: Store, below: str = "") -> dict[Entry, list[Version]]:
    """All versions of the artifacts at or below a path, in the order of their paths."""
    found: dict[Entry, list[Version]] = {}
    keys = store.keys(f"artifacts/{below}".rstrip("/"))
    for version in sorted(
        filter(None, map(Version.of, keys)),
        key=lambda v: (v.entry.artifact.split("/"), v.entry.partition or "", v.pushed, v.sha256),
    ):
        found.setdefault(version.entry, []).append(version)
    return found


def read(store: Store, version: Version) -> tuple[bytes, Record]:
    """The record of a version, as it was pushed.

    Raises MirrorError where it is gone, another one, or of what no data root can hold.
    """
    data, shown = store.read(version.key), f"{store.url}: {version.key}"
    if hashlib.sha256(data).hexdigest() != version.sha256:
        raise MirrorError(f"{shown}: has another sha256: {again(version)}")
    record = parsed_record(data, shown)
    if reason := wrong_record(record, version.entry):
        raise MirrorError(f"{shown}: {reason}")
    if (record.data_version, bytes_of(record, data)) != (version.data_version, version.size):
        raise MirrorError(f"{shown}: its name says other contents than the record")
    return data, record


def parsed_record(data: bytes, shown: Path | str) -> Record:
    """The record in the bytes of a file. Raises GristmillError, with the file, where it is none."""
    try:
        record = Record.model_validate_json(data)
        record.computed_digest()  # a number that is none has no digest
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise GristmillError(f"{shown}: not a provenance record: {reason}") from error
    if record.schema_version not in READABLE_VERSIONS:
        raise GristmillError(f"{shown}: schema version {record.schema_version} is not known here")
    return record


def again(*versions: Version) -> str:
    """What a person does about an object that the mirror lost or changed."""
    named = ", ".join(version.key for version in versions)
    return f"remove it and {named} from the mirror, and push the artifact again"


def files_of(record: Record) -> list[Output]:
    """The files of an artifact but for its record."""
    files = list(record.outputs)
    if (inputs := record.inputs_file) is not None:
        own = {"path": inputs.path, "bytes": inputs.bytes, "sha256": inputs.sha256}
        files.append(Output(**own, mtime_ns=record.trusted_ns, payload=False))
    return files


def bytes_of(record: Record, data: bytes) -> int:
    """Bytes of all files of an artifact; `data` is its record."""
    return len(data) + sum(file.bytes for file in files_of(record))


def record_name(entry: Entry) -> str:
    """Path of the record in the folder of an artifact."""
    return entry.record(Path()).relative_to(entry.artifact).as_posix()


def outer_of(record: Record) -> Input | None:
    """The artifact that this one was made from and is nested in, with its data version."""
    inside = (each for each in record.inputs if each.data_version and each.path)
    return next((each for each in inside if record.artifact.startswith(f"{each.path}/")), None)


def wrong_name(entry: Entry) -> str | None:
    """Why a mirror cannot hold an artifact of this name, None where it can."""
    if f"{entry.artifact}/".startswith("drops/"):
        return "drops are no artifacts"
    keys = [*entry.artifact.split("/"), *([] if entry.partition is None else [entry.partition])]
    return next((reason for key in keys if (reason := refusal(key))), None)


def wrong_record(record: Record, entry: Entry) -> str | None:
    """Why a record is not that of an artifact partition, as it was written; None where it is."""
    if record.digest != record.computed_digest():
        return "was changed after it was written"
    if record.data_version != provenance.data_version(record.outputs):
        return "its data version is not that of its outputs"
    if record.artifact != entry.artifact or entry.partition not in (None, record.partition):
        return f"is of {record.artifact}, which was moved"
    seen = {PurePosixPath(record_name(entry))}
    for file in files_of(record):
        if reason := wrong_path(file.path):
            return f"the path {file.path!r} {reason}"
        if (path := PurePosixPath(file.path)) in seen:
            return f"the path {file.path!r} is there more than once"
        if not (_SHA256.fullmatch(file.sha256) and 0 <= file.bytes < _MOST > abs(file.mtime_ns)):
            return f"the file {file.path!r} has a sha256, size or time that no file has"
        seen.add(path)
    return None


def chosen(
    items: Iterable[tuple[Entry, str, T]], names: Sequence[str], where: str
) -> list[tuple[Entry, str, T]]:
    """Those of `items` (name, asset, anything) that names mean, all without names.

    names: an artifact's path in the data root, a folder above some, `path@partition` for one
        partition of a shared folder, or an asset as `macroxue/pack`.

    Raises GristmillError for a name that means nothing.
    """
    listed = list(items)
    if not names:
        return listed
    wanted = [name.strip("/") for name in names]
    for name in wanted:
        if not any(means(name, entry, asset) for entry, asset, _ in listed):
            raise GristmillError(f"{where}: no artifact or asset {name} is here")
    return [item for item in listed if any(means(name, *item[:2]) for name in wanted)]


def means(name: str, entry: Entry, asset: str = "") -> bool:
    """Whether a name means an artifact partition: see `chosen`."""
    return name in (asset, entry.name) or f"{entry.artifact}/".startswith(f"{name}/")


def wanted_of(
    store: Store, known: Known, names: Sequence[str], version: str = "", sha256: str = ""
) -> list[Version]:
    """The versions that names mean: the newest of each, or the one that is pinned."""
    pinned = bool(version or sha256)
    own = [entry for entry in known if [entry.name] == [name.strip("/") for name in names]]
    if pinned and own:  # the artifact itself, though others are nested in it
        return [_pinned(store, known[own[0]], version, sha256)]
    assets = dict.fromkeys(known, "")
    if not all(any(means(name.strip("/"), entry) for entry in known) for name in names):
        # Only the records say which asset an artifact is of.
        newest = [versions[-1] for versions in known.values()]
        with ThreadPoolExecutor() as threads:
            records = threads.map(lambda each: read(store, each)[1], newest)
            assets |= {
                each.entry: record.asset for each, record in zip(newest, records, strict=True)
            }
    items = [(entry, assets[entry], versions) for entry, versions in known.items()]
    taken = [versions for _, _, versions in chosen(items, names, store.url)]
    if not pinned:
        return [versions[-1] for versions in taken]
    if len(taken) != 1:
        raise GristmillError(
            f"a version is of one artifact, and {len(taken)} are asked for: name one"
        )
    return [_pinned(store, taken[0], version, sha256)]


def _pinned(store: Store, versions: Sequence[Version], version: str, sha256: str) -> Version:
    """The newest version with a data version and a sha256."""
    title = versions[0].entry.title
    if version and not DATA_VERSION.fullmatch(version):
        raise MirrorError(
            f"{store.url}: {title}: {version!r} names no version: write the data version, "
            f"{versions[-1].data_version[:12]} for the newest one"
        )
    for each in reversed(versions):
        if each.data_version.startswith(version) and each.sha256.startswith(sha256):
            return each
    asked = f"data version {version}" if version else f"sha256 {sha256}"
    raise MirrorError(
        f"{store.url}: no version of {title} has the {asked}: `gristmill pull {store.url} "
        f"{versions[0].entry.name} --list` lists what there is"
    )


def lines(url: str | Store, names: Sequence[str] = ()) -> Iterator[str]:
    """A line for each version, the newest first: what it is, when it was pushed, and its sha256.

    Raises MirrorError where the mirror cannot be read, GristmillError for a name that means
    nothing.
    """
    store = url if isinstance(url, Store) else Store(url, make=False)
    known = listed(store)
    for newest in wanted_of(store, known, names):
        for each in reversed(known[newest.entry]):
            at = each.pushed
            pushed = f"pushed {at[:4]}-{at[4:6]}-{at[6:8]} {at[8:10]}:{at[10:12]} UTC"
            yield f"{each.entry.title}: {pushed}, {each}"


def damaged(shown: Path) -> BadInput:
    """The error of a file that is not the one in its artifact's record."""
    return BadInput(
        shown,
        "is not the file that its provenance record lists: it is not pushed: build the artifact "
        "again with --rebuild, or bring the file back",
    )


_TRIES: Final = 3
_AT_ONCE, _ARTIFACTS = 1_000, 4
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def transferring(
    store: Store, parallel: int, stage: Stage
) -> Iterator[tuple[Transfer, ThreadPoolExecutor]]:
    """A transfer of so many files at once, and the threads of the artifacts that share it.

    After an interrupt no thread begins a file, or continues with one.
    """
    with ThreadPoolExecutor(parallel) as files, ThreadPoolExecutor(_ARTIFACTS) as artifacts:
        transfer = Transfer(store, files, stage)
        try:
            yield transfer, artifacts
        except BaseException:
            transfer.stopped.set()
            files.shutdown(wait=False, cancel_futures=True)
            artifacts.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass(frozen=True)
class Transfer:
    """What moves files between one mirror and this host.

    stopped: set where no thread shall continue with its file.
    """

    store: Store
    threads: Executor
    stage: Stage
    stopped: Event = field(default_factory=Event)

    def send(self, folder: OpenFolder, record: Record, version: Version) -> int:
        """Make the mirror have the files of an open artifact; returns the bytes that it lacked.

        Raises BadInput where a file is not what the record says, MirrorError as the store.
        """
        return sum(self._each(lambda file: self._send(folder, version, file), files_of(record)))

    def _send(self, folder: OpenFolder, version: Version, file: Output) -> int:
        key = version.file(file)
        if self.store.holds(key, file.bytes, file.sha256):
            self._advance(file.bytes)
            return 0
        self.store.write(key, self._right(folder, file), file.bytes)
        return file.bytes

    def _right(self, folder: OpenFolder, file: Output) -> Iterator[bytes]:
        """The bytes of a file. Raises BadInput before its end where they are others."""
        shown, digest = folder.path / file.path, hashlib.sha256()
        try:
            descriptor = os.open(folder.inside / file.path, _FILE)
        except OSError as error:
            raise BadInput(shown, f"cannot be sent: {error.strerror}") from error
        with named_reader(descriptor, shown, buffering=0) as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise damaged(shown)
            while data := opened.read(PIECE):
                digest.update(data)
                self._advance(len(data))
                yield data
        if digest.hexdigest() != file.sha256:
            raise damaged(shown)

    def fetch(self, version: Version, record: Record, out: Path) -> None:
        """Fetch the files of a version into a folder; what a stopped pull left there is kept.

        Raises MirrorError where the mirror lacks a file, or gives other bytes three times.
        """
        self._each(lambda file: self._fetch(version, file, out / file.path), files_of(record))

    def _fetch(self, version: Version, file: Output, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        key = version.file(file)
        for _ in range(_TRIES):
            digest, size = hashlib.sha256(), 0
            with path.open("a+b") as target:
                target.seek(0)
                while data := target.read(PIECE):
                    digest.update(data)
                    size += len(data)
                self._advance(min(size, file.bytes))
                for piece in self.store.pieces(key, file.bytes, size):
                    digest.update(piece)
                    target.write(piece)
                    self._advance(len(piece))
            if digest.hexdigest() == file.sha256:
                os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
                return
            path.unlink()
        raise MirrorError(
            f"{self.store.url}: {key} has other bytes than its name says, {_TRIES} times: "
            f"{again(version)}"
        )

    def _advance(self, size: int) -> None:
        if self.stopped.is_set():
            raise MirrorError(f"{self.store.url}: was interrupted: do it again to continue")
        self.stage.advance(size)

    def _each(self, work: Callable[[Output], T], files: Sequence[Output]) -> list[T]:
        """What `work` returns of each file; no thread is at work on any when this ends."""
        done: list[T] = []
        for at in range(0, len(files), _AT_ONCE):
            begun = [self.threads.submit(work, file) for file in files[at : at + _AT_ONCE]]
            try:
                done += [each.result() for each in begun]
            finally:
                for each in begun:
                    each.cancel()
                wait(begun)
        return done


Item = tuple[find_artifacts.Artifact, Record | None]
"""An artifact, and its record where it can be read."""

_ATTEMPTS: Final = 20


@dataclass(frozen=True)
class Pushed:
    """What a push did with one artifact partition.

    title: the artifact, and the partition of a shared folder.
    said: the version or the commit that holds it, and what a person should know of it.
    created: whether this call made that.
    sent_bytes: bytes that the mirror did not have.
    error: why it failed, None otherwise.
    """

    title: str
    said: str = ""
    created: bool = False
    sent_bytes: int = 0
    error: str | None = None

    def __str__(self) -> str:
        how = "failed" if self.error else "pushed" if self.created else "unchanged"
        return f"{how:<10} {self.title}: {self.error or self.said}"


def found(
    root: Path, artifacts: Iterable[find_artifacts.Artifact] | None
) -> list[tuple[Entry, str, Item]]:
    """Returns the artifacts of a data root; one with an unreadable record has no asset."""
    listed: list[tuple[Entry, str, Item]] = []
    for item in find_artifacts.artifacts(root) if artifacts is None else artifacts:
        try:
            record = provenance.read_record(item.record_path)
        except GristmillError:
            listed.append((Entry.of(root, item), "", (item, None)))
        else:
            listed.append((Entry.of(root, item), record.asset, (item, record)))
    return listed


def of_one_generation(
    item: find_artifacts.Artifact, entry: Entry, work: Callable[[OpenFolder, Record, bytes], T]
) -> T:
    """Do something with an artifact's folder and its record; again where a rebuild replaced it.

    work: gets the open folder, the record in it and that record's bytes, and reads files through
        the folder alone.

    Raises BadInput where the record or a file is not what it should be, GristmillError where the
    artifact cannot be pushed, and what `work` raises.
    """
    if reason := wrong_name(entry):
        raise GristmillError(f"{item.folder}: cannot be pushed: {reason}")
    name = record_name(entry)
    for attempt in range(_ATTEMPTS):
        folder = OpenFolder(item.folder, "none", name)
        try:
            data = read_bytes(folder.inside / name)
            record = parsed_record(data, item.record_path)
            if reason := wrong_record(record, entry):
                raise BadInput(item.record_path, f"{reason}: it is not pushed")
            return work(folder, record, data)
        except (GristmillError, OSError):
            # Files of a folder that is being deleted are missing one by one.
            if attempt + 1 == _ATTEMPTS or not folder.replaced():
                raise
        finally:
            folder.close()
    raise AssertionError
