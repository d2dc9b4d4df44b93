"""The description of a build, what a builder receives, and how a build can fail."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from gristmill import families, provenance
from gristmill.code.digest import Code
from gristmill.contract import FileFailed, GristmillError, Summary, Violation, in_words
from gristmill.inbox.listing import Account, ColumnState
from gristmill.keys import refusal
from gristmill.layout import SLOTS, WORK
from gristmill.provenance import Input, Record, Tokenizer, environment
from gristmill.provenance.inventory import Entry
from gristmill.provenance.record import changed, changed_inputs
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import LinkRule

PUBLISHER: Final = "publisher"
"""Name under which a part store knows a build that is no rank and no share."""


class LawsBroken(GristmillError):
    """A staged artifact breaks laws of its family; nothing was published."""

    def __init__(self, artifact: str, violations: Sequence[Violation]) -> None:
        shown = "\n".join(f"  {violation}" for violation in violations[:20])
        more = f"\n  and {len(violations) - 20} more" if len(violations) > 20 else ""
        super().__init__(f"{artifact}: not published, the build breaks laws:\n{shown}{more}")
        self.violations = list(violations)


class InputChanged(GristmillError):
    """An input was written to, or rebuilt, while it was being read."""


class InputDamaged(GristmillError):
    """A file of a published input differs from the record of that input."""


class OtherOutput(GristmillError):
    """A build of the published fingerprint made another data version; it was not published."""


class DiskFull(GristmillError):
    """There is not enough free disk space; nothing was published and nothing was lost."""


@dataclass(frozen=True)
class ManifestConfig:
    """The config of a manifest: the records that it is written from."""

    records: Mapping[str, str]

    @classmethod
    def of(cls, records: Iterable[Record]) -> ManifestConfig:
        """Returns the config of a manifest of some partitions."""
        return cls({str(record.partition): record.digest for record in records})


class LeftOut(NamedTuple):
    """What of the drops of a build is left out: rows that were forgotten.

    inputs: the files of the tombstones. by_date: how many rows, by day. links: gives the rule by
    which readers open the files and pass over the rows.
    """

    inputs: Sequence[Input]
    by_date: Mapping[str, int]
    links: Callable[[], LinkRule]


@dataclass(frozen=True)
class Attempt:
    """What a builder receives: where to write, and what it makes.

    published: the artifact's final folder, for files that must name their place.
    store: the part store, whose folder may not exist yet; a builder uses `parts`.
    recipe: digest of the build's inputs, config and code version, for files that name it.
    inputs: gives a digest of the input files as they were proved, for the part store; default
        None: whoever runs the builder gives it to the store.
    """

    out: Path
    published: Path
    store: PartStore
    recipe: str
    progress: Progress = SILENT
    inputs: Callable[[], str] | None = None

    @property
    def parts(self) -> PartStore:
        """Finished parts of this fingerprint, of this attempt or a killed one.

        The first use makes the folder: small builds, which have no parts, would
        spend a tenth of their time on it.
        """
        self.store.folder.mkdir(parents=True, exist_ok=True)
        if self.inputs is not None:
            self.store.begin(PUBLISHER, self.inputs())
        return self.store


@dataclass(frozen=True)
class Build:
    """One artifact partition: what it is made from, how, and where it goes.

    partition: its key, None where the asset has no partitions.
    laws: yields what the staged folder breaks; one violation stops the commit.
    notes: yields what is unusual in the staged folder and breaks no law; the record has it.
    noted: the same, which the laws add while they run; None: `notes` looks for it.
    shared: several partitions publish into the folder `artifact`, each with its
        own record `provenance/<partition>.json`.
    outer: path of the artifact that `artifact` is nested in; both take its lock.
    space: bytes that the build needs at most, 0 where unknown. rows: about how many it makes.
    deletes: paths of artifacts among the inputs that are deleted once this one is
        published and verified.
    account: what becomes of the files of the drop that it is made from; None: of no drop.
    columns: takes the counts of what was made; returns what became of the columns of the drop.
    fetches: whether its builder downloads what it is made from; default False.
    remarks: for whoever reads the result, as what was left out; default none.
    forgotten: how many rows of its drops have tombstones, by their dates; default: none has.
    """

    root: Path
    artifact: str
    asset: str
    partition: str | None
    code_version: str
    config: object
    inputs: Sequence[Input]
    make: Callable[[Attempt], Summary]
    laws: Callable[[Path], Iterable[Violation]] = lambda _: ()
    notes: Callable[[Path], Iterable[Violation]] = lambda _: ()
    noted: list[Violation] | None = None
    shared: bool = False
    outer: str | None = None
    tokenizer: Tokenizer | None = None
    space: int = 0
    rows: int = 0
    deletes: Sequence[str] = ()
    account: Account | None = None
    columns: Callable[[Mapping[str, int | float]], Iterable[ColumnState]] = lambda _: ()
    fetches: bool = False
    remarks: Sequence[str] = ()
    forgotten: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.shared:
            return
        if self.outer is not None:
            raise ValueError(f"{self.artifact}: a nested folder is not shared by partitions")
        if self.partition is None or (wrong := refusal(self.partition)):
            reason = "there is none" if self.partition is None else wrong
            raise ValueError(
                f"{self.artifact}: a partition of a shared folder names its record: {reason}"
            )

    @property
    def folder(self) -> Path:
        """Where the artifact is published."""
        return self.root / self.artifact

    @property
    def record_path(self) -> Path:
        """Where the record of the published artifact is."""
        return provenance.record_path(self.folder, self.partition, self.shared)

    @cached_property
    def recipe(self) -> str:
        """Digest of the code version, the config, the inputs and the vocabulary."""
        return provenance.recipe(self.code_version, self.config, self.inputs, self.tokenizer)

    @property
    def code(self) -> Code:
        """The code of the asset's builder."""
        return families.code_of_asset(self.asset)

    @property
    def entry(self) -> Entry:
        """Its entry in the inventory of the data root."""
        return Entry(self.artifact, self.partition if self.shared else None)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of everything that decides the payload."""
        return provenance.fingerprint(self.recipe, self.code.digest, self._libraries())

    def made(self, record: Record) -> bool:
        """Whether `record` is of the same recipe, by code and libraries of the same output.

        A record without a code digest counts as having the digest of 0.2.0.
        """
        return any(self._made(record, recipe) for recipe in self._recipes(record))

    def changes(self, record: Record) -> list[str]:
        """Returns what decides the payload and is not as a record says, as `code changed`.

        record: of the same artifact and partition.
        """
        found = []
        if self.code_version != record.code_version:
            found.append(f"code version {record.code_version} -> {self.code_version}")
        same = provenance.recorded_values(self.config, record.config)
        fields = provenance.config_fields(self.config, affecting_output=True)
        fields = {name: value for name, value in fields.items() if name not in same}
        found += changed("config", record.config, fields)
        found += changed_inputs(provenance.read_inputs(record, self.record_path), self.inputs)
        if self.tokenizer != record.tokenizer:
            found.append("vocabulary changed")
        libraries = {name: version or "none" for name, version in self._libraries(record).items()}
        found += changed("libraries", record.libraries, libraries)
        if not self.code.is_equal(record.code_digest):
            found.append("code changed")
        return found

    def _recipes(self, record: Record) -> Iterator[str]:
        """The recipe, and as it was when the record was written if the config is equal."""
        yield self.recipe
        if recorded := provenance.recorded_values(self.config, record.config):
            yield provenance.recipe(
                self.code_version, self.config, self.inputs, self.tokenizer, recorded
            )

    def _made(self, record: Record, recipe: str) -> bool:
        code = self.code
        if record.code_digest is not None:
            versions = self._libraries(record)
            made = (provenance.fingerprint(recipe, each, versions) for each in code.equal_digests)
            return record.fingerprint in made
        installed = environment.libraries()
        return (
            record.fingerprint == recipe
            and code.is_equal(None)
            and all(
                record.libraries.get(name, installed.get(name)) == installed.get(name)
                for name in code.libraries
            )
        )

    def _libraries(self, record: Record | None = None) -> dict[str, str]:
        """Versions of the libraries that decide the payload, empty as a record left them."""
        installed = environment.libraries()
        unlisted = environment.RECORDED_LATER - record.libraries.keys() if record else frozenset()
        versions = {
            name: "" if name in unlisted else installed.get(name, "")
            for name in self.code.libraries
        }
        later = environment.NAMED_LATER
        return {name: text for name, text in versions.items() if text or name not in later}

    @property
    def parts_key(self) -> str:
        """Name of the folder of parts: a digest of the fingerprint and the raw files' times.

        A raw file that was replaced and put back while parts were made has the
        old bytes, but a new time.
        """
        times = [item.mtime_ns for item in self.inputs]
        return provenance.digest([self.fingerprint, times])[:16]

    @property
    def title(self) -> str:
        """The artifact in messages: its path, and the partition where several share a folder."""
        return self.artifact if not self.shared else f"{self.artifact} [{self.partition}]"


@dataclass(frozen=True)
class Published:
    """What is published now.

    not_checked: one line with the rules that its config leaves to the readers; empty for none.
    before: the record that stood before this call built; None if none stood or nothing was built.
    account: of the drop that it is made from, in one line; empty: of no drop.
    """

    folder: Path
    record: Record
    rebuilt: bool
    notes: list[str] = field(default_factory=list)
    before: Record | None = None
    account: str = ""
    not_checked: str = ""


def not_checked_line(record: Record) -> str:
    """Returns in one line the rules that the config of an artifact leaves to the readers.

    Empty where there is none.
    """
    excused = families.excused(record.asset, record.config)
    return f"not checked: {', '.join(excused)}" if excused else ""


def account_line(build: Build, record: Record) -> str:
    """Returns in one line what became of a drop's files and rows."""
    kind = families.kind_of_asset(build.asset) or families.Kind(build.asset)
    rows, set_aside = kind.rows_of(record.counts), kind.set_aside_of(record.counts)
    counted = [] if rows is None else [f"{rows:,} row{'' if rows == 1 else 's'}"]
    splits = {name.partition("/")[2]: record.counts.get(name, 0) for name in kind.rows}
    if counted and len(splits) > 1 and all(splits):
        counted[0] += f" ({', '.join(f'{count:,} {name}' for name, count in splits.items())})"
    if (total := record.counts.get(kind.out_of[0], rows or 0)) != (rows or 0):
        counted.append(f"{total - (rows or 0):,} of {total:,} left out: {kind.out_of[1]}")
    for what, counts in set_aside.items():
        by_reason = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        counted.append(f"{sum(counts.values()):,} {what} ({by_reason})")
    return "; ".join([*(build.account.lines if build.account else []), *counted])


_LOCKS: Final = "locks"


@dataclass(frozen=True)
class Slot:
    """Names below `.gristmill` for one artifact partition.

    Locks and slots are in folders of their own, so that no artifact's name can
    be the name of another artifact's lock.
    """

    work: Path
    lock: Path
    folder_lock: Path

    @staticmethod
    def of(build: Build) -> Slot:
        """The slot of a build."""
        outermost = build.root / (build.outer or build.artifact)
        work, name = outermost.parent / WORK, outermost.name
        own = name
        if build.shared:
            own = f"{name}@{build.partition}"
        elif build.outer is not None:
            inside = PurePosixPath(build.artifact).relative_to(build.outer)
            own = f"{name}+{str(inside).replace('/', '+')}"
        slot = work / SLOTS / own
        return Slot(slot, lock_of_slot(slot), work / _LOCKS / name)


def slot_of_folder(folder: Path) -> Path:
    """The slot of an artifact that has `folder` to itself and is not nested in another."""
    return folder.parent / WORK / SLOTS / folder.name


def lock_of_folder(folder: Path) -> Path:
    """The lock of a folder that several partitions share."""
    return folder.parent / WORK / _LOCKS / folder.name


def lock_of_slot(slot: Path) -> Path:
    """The lock that the builder in a slot holds.

    A nested artifact (`outer+inner`) is built under the lock of the outer one.
    """
    return slot.parents[1] / _LOCKS / slot.name.split("+")[0]


_SPARE_BYTES = 1 << 20  # records, lists of inputs and headers
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# SQLite reports ENOSPC by a code of its own, but quotas and limits as a failed write.
_SQLITE_DISK_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE}


def bytes_of(*places: Path) -> int:
    """Returns the bytes of files, and of the files that lie in folders, for an estimate.

    places: files and folders; what is missing counts 0, since the proof of the inputs says more.
    """
    total = 0
    for place in places:
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        total += sum(file.stat().st_size for file in files if file.is_file())
    return total


def check_space(build: Build, folder: Path) -> None:
    """Raise DiskFull where the disk of `folder` has less free space than `build` needs."""
    free = shutil.disk_usage(folder).free
    if free < build.space + _SPARE_BYTES:
        raise DiskFull(
            f"{build.title}: needs about {build.space + _SPARE_BYTES:,} bytes in {build.root}, "
            f"{free:,} are free: make room or move the data root; nothing was changed"
        )


@contextmanager
def translate_disk_errors(build: Build) -> Iterator[None]:
    """Raise DiskFull where the disk is full, FileFailed where it or the network failed."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if is_disk_full(error):
            raise DiskFull(
                f"{build.title}: {error}: make room in {build.root} and build again; "
                "what was published before is untouched"
            ) from error
        found = OSError(errno.EIO, str(error)) if _is_sqlite_failure(error) else error
        said = in_words(found, f"a file in {build.root}")
        if said is found:
            raise
        raise FileFailed(
            f"{build.title}: {said}; what was published before is untouched"
        ) from error


def _is_sqlite_failure(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF == sqlite3.SQLITE_IOERR


def is_disk_full(error: BaseException) -> bool:
    """Whether an error means that the disk, a quota or a limit on file sizes is full."""
    if isinstance(error, OSError):
        return error.errno in _DISK_FULL
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_DISK_FULL
    return False
