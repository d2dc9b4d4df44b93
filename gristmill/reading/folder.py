"""One generation of an artifact's folder, read through one handle of the folder.

A rebuild exchanges the folder behind its path and deletes the old one. Files that were opened
relative to the handle are all of one generation, whatever the path leads to.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import stat
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar, get_args

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.provenance import RECORD

_SHOWN = 12


class StaleDataset(GristmillError):
    """What is published now is not the version that a reader was opened on."""


class FileIdentity(NamedTuple):
    """What tells one file on disk from another and from itself before a change."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @staticmethod
    def of(stat: os.stat_result) -> FileIdentity:
        """The identity in the result of a stat call."""
        return FileIdentity(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True)
class Generation:
    """One version of an artifact.

    folder: as it was given to the reader.
    digest: of its provenance record; None without a record.
    data_version: of that record; None without a record.
    files: identity of each file that the reader opened, by its path in the artifact.
    artifact: its place in the data root by that record; default empty.
    """

    folder: Path
    digest: str | None
    data_version: str | None
    files: Mapping[str, FileIdentity]
    artifact: str = ""

    def __str__(self) -> str:
        if self.digest is None:
            return "files without a record"
        return f"data version {(self.data_version or '')[:_SHOWN]}, record {self.digest[:_SHOWN]}"


def refuse_other(opened: Generation, current: Generation) -> None:
    """Raise StaleDataset where two generations of an artifact have not the same payload."""
    if opened.data_version != current.data_version:
        raise stale(opened, f"now there is {current}")


def stale(opened: Generation, current: str) -> StaleDataset:
    """The error for a reader whose generation is gone."""
    return StaleDataset(
        f"{opened.folder}: was rebuilt or changed after this dataset was opened: it was opened on"
        f" {opened}; {current}: open the dataset again"
    )


Verify = Literal["none", "sizes", "hash"]

LEVELS: Final[tuple[Verify, ...]] = get_args(Verify)


def verify_level(value: Verify | bool) -> Verify:
    """The level that an argument `verify` means.

    value: "none" opens the files, and refuses only those that were cut short. "sizes" also
        compares the size of each file that the reader uses with the record. "hash" also compares
        its sha256. True is "hash", False is "sizes".

    Raises ValueError for another value.
    """
    if isinstance(value, bool):
        return "hash" if value else "sizes"
    if value not in LEVELS:
        raise ValueError(f"verify must be one of {', '.join(map(repr, LEVELS))}, not {value!r}")
    return value


DESCRIPTORS = Path("/proc/self/fd")

_NAMED = re.compile(rf"{DESCRIPTORS}/(\d+)")
_REMEDY = "build it again, or copy it again"
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    sqlite3.Error,
    struct.error,
)
"""What libraries raise on damaged files."""


def _renamed(text: str, names: Mapping[int, Path]) -> str:
    def name(match: re.Match[str]) -> str:
        return str(names.get(int(match[1]), match[0]))

    return _NAMED.sub(name, text)


def _rename(error: GristmillError, names: Mapping[int, Path]) -> None:
    error.args = tuple(_renamed(a, names) if isinstance(a, str) else a for a in error.args)
    if isinstance(error, BadInput):
        error.file, error.rule = _renamed(error.file, names), _renamed(error.rule, names)


@contextmanager
def damage_named(
    where: Callable[[], Path], names: Callable[[], Mapping[int, Path]]
) -> Iterator[None]:
    """Raise every error of reading files as a GristmillError that names the real file."""
    try:
        yield
    except GristmillError as error:
        _rename(error, names())
        raise
    except OSError as error:
        file = _renamed(str(error.filename), names()) if error.filename else str(where())
        rule = f"cannot be read ({error.strerror or repr(error)}): {_REMEDY}"
        raise BadInput(file, rule) from error
    except _DAMAGE as error:
        text = _renamed(repr(error), names())
        raise BadInput(where(), f"cannot be read, it is damaged ({text}): {_REMEDY}") from error


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK the open of a pipe would wait for its writer.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_READ_BYTES = 1 << 20


class HeldFile:
    """An open file that stays readable after its artifact was replaced; closed with this object."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.path = path
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)

    @property
    def opened(self) -> Path:
        """A path that opens this file, in this process and while this object lives."""
        return DESCRIPTORS / str(self._descriptor)

    @contextmanager
    def reading(self) -> Iterator[Path]:
        """A path that opens the file, and its errors in the words of the user."""
        with damage_named(lambda: self.path, lambda: {self._descriptor: self.path}):
            yield self.opened


class OpenFolder:
    """An artifact's folder while a reader opens its files.

    known: the generation that it must be; None for any.
    outer: the folder that this one is nested in, directly; None for none.
    record: its record, None where it has none; known after `read_record`.

    Raises BadInput where there is no such folder, StaleDataset where `known` says that there
    was one.
    """

    def __init__(
        self,
        path: Path,
        level: Verify,
        record_name: str,
        known: Generation | None = None,
        outer: OpenFolder | None = None,
    ) -> None:
        self.path, self.level, self._known, self._outer = path, level, known, outer
        self.names: dict[int, Path] = {}
        self.latest = path
        self._files: dict[str, int] = {}
        self._identities: dict[str, FileIdentity] = {}
        self._handle = self._open_handle()
        self.names[self._handle] = path
        self.record: provenance.Record | None = None
        self._record_name = record_name
        self._outputs: dict[str, provenance.Output] = {}

    def _open_handle(self) -> int:
        try:
            if self._outer is not None:
                return os.open(self.path.name, _FOLDER, dir_fd=self._outer._handle)
            return os.open(self.path, _FOLDER)
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._known is not None:
                raise stale(self._known, "now there is no such folder") from error
            raise BadInput(self.path, "there is no such folder: build or copy it") from error

    def read_record(self) -> None:
        """Read the record, if there is one.

        Raises GristmillError where it cannot be read or was changed, StaleDataset where it is of
        another data version than the known generation.
        """
        name, known = self._record_name, self._known
        if self.has(name):
            self.latest = self.path / name
            self.record = provenance.read_record(self.inside / name)
            self._outputs = {output.path: output for output in self.record.outputs}
        if known is not None:
            refuse_other(known, self.generation())
            if known.digest == self.generation().digest:
                return
        checked = self.record if self.level != "none" else None
        if checked is not None and checked.digest != checked.computed_digest():
            raise BadInput(
                self.latest, "was changed after it was written: build the artifact again"
            )

    @property
    def inside(self) -> Path:
        """The folder as a path, for functions that take one, while it is open here."""
        return DESCRIPTORS / str(self._handle)

    def has(self, name: str) -> bool:
        """Whether there is something at this path in the folder."""
        try:
            os.stat(name, dir_fd=self._handle)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def file(self, name: str) -> Path:
        """Open a file, compare it with the record at this level, and give a path that opens it.

        name: path in the folder.

        The path is good until the folder is closed. Raises BadInput where the file is missing, is
        not a regular file, or is not the file in the record.
        """
        if name not in self._files:
            self._admit(name)
        return DESCRIPTORS / str(self._files[name])

    def keep(self, name: str) -> HeldFile:
        """As `file`, for a file that is read later."""
        self.file(name)
        return HeldFile(self._files[name], self.path / name)

    def check(self, name: str) -> None:
        """As `file`, but close the file again: for more of them than a process may hold open.

        `reopened` opens it in this `generation`.
        """
        self.file(name)
        descriptor = self._files.pop(name)
        del self.names[descriptor]
        os.close(descriptor)

    def sha256(self, name: str) -> str | None:
        """The sha256 of a file by the record; None without a record."""
        return self._outputs[name].sha256 if name in self._outputs else None

    def _admit(self, name: str) -> None:
        self.latest = path = self.path / name
        try:
            descriptor = os.open(name, _FILE, dir_fd=self._handle)
        except OSError as error:
            self._refuse_change(name, None)
            reason = "is missing" if isinstance(error, FileNotFoundError) else error.strerror
            raise BadInput(path, f"{reason}: build the artifact again, or copy it again") from error
        self._files[name] = descriptor
        self.names[descriptor] = path
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BadInput(path, "is not a file: build the artifact again, or copy it again")
        self._identities[name] = FileIdentity.of(found)
        self._refuse_change(name, self._identities[name])
        if self.record is not None:
            self._compare(name, descriptor, path)

    def _refuse_change(self, name: str, identity: FileIdentity | None) -> None:
        """Without a record the files decide whether this is the known generation."""
        known = self._known
        if known is not None and known.digest is None and known.files.get(name) != identity:
            raise stale(known, f"now {name} is {'another file' if identity else 'missing'}")

    def _compare(self, name: str, descriptor: int, path: Path) -> None:
        output, identity = self._outputs.get(name), self._identities[name]
        if output is None:
            if self.level == "none":
                return
            raise BadInput(path, "is not in the provenance record: build the artifact again")
        # A file that was cut short is refused at every level.
        if identity.size < output.bytes or (identity.size > output.bytes and self.level != "none"):
            raise BadInput(
                path,
                f"has {identity.size} bytes, its provenance record says {output.bytes}:"
                " build the artifact again, or copy it again",
            )
        # The process that made the pickle has hashed the same file.
        if self._known is not None and self._known.files.get(name) == identity:
            return
        if self.level == "hash" and _sha256(descriptor) != output.sha256:
            raise BadInput(
                path,
                "does not have the sha256 in its provenance record:"
                " build the artifact again, or copy it again",
            )

    def generation(self) -> Generation:
        """What has been opened so far."""
        record = self.record
        files = dict(self._identities)
        if record is None:
            return Generation(self.path, None, None, files)
        return Generation(self.path, record.digest, record.data_version, files, record.artifact)

    def finish(self) -> Generation:
        """The generation, after all files were opened.

        Raises BadInput where "hash" has no record to compare with.
        """
        if self.level == "hash" and self.record is None:
            raise BadInput(
                self.path,
                'has no provenance record, which verify="hash" compares with: copy the record too,'
                ' or use verify="sizes"',
            )
        return self.generation()

    def replaced(self) -> bool:
        """Whether the path leads to another folder now, or to none."""
        try:
            if self._outer is not None:
                now = os.stat(self.path.name, dir_fd=self._outer._handle)
            else:
                now = self.path.stat()
        except OSError:
            return True
        here = os.fstat(self._handle)
        return (now.st_dev, now.st_ino) != (here.st_dev, here.st_ino)

    def close(self) -> None:
        """Close all descriptors; maps and held files stay."""
        for descriptor in self.names:
            os.close(descriptor)
        self.names, self._files = {}, {}


def _sha256(descriptor: int) -> str:
    digest, at = hashlib.sha256(), 0
    while data := os.pread(descriptor, _READ_BYTES, at):
        digest.update(data)
        at += len(data)
    return digest.hexdigest()


def made_from_another(made: OpenFolder, source: OpenFolder) -> bool:
    """Whether the record of an artifact names another data version of an input than there is.

    False where one of them has no record, or the record names no such input.
    """
    if made.record is None or source.record is None:
        return False
    of = source.record
    versions = {
        item.data_version
        for item in made.record.inputs
        if (item.asset, item.partition) == (of.asset, of.partition)
    }
    return bool(versions) and of.data_version not in versions


T = TypeVar("T")
Generations = Mapping[tuple[Path, str], Generation]
"""By folder and name of the record."""

_ATTEMPTS = 20


class Opening:
    """The folders that a reader opens at one time.

    known: generations that the folders must be; empty for the first opening.
    first: whether this is the first opening, at which contents are checked.
    """

    def __init__(self, level: Verify, known: Generations) -> None:
        self.level, self.known, self.first = level, known, not known
        self._folders: dict[tuple[Path, str], OpenFolder] = {}
        self._latest: OpenFolder | None = None

    def folder(
        self, path: Path, record: str = RECORD, within: OpenFolder | None = None
    ) -> OpenFolder:
        """Open the folder of an artifact.

        path: of the folder.
        record: path of its record in the folder; default `provenance.json`.
        within: the open folder that it is nested in, directly; default None.

        Raises as `OpenFolder`. The folder is closed at the end of the opening.
        """
        key = (path, record)
        if key not in self._folders:
            known = self.known.get(key)
            self._folders[key] = OpenFolder(path, self.level, record, known, within)
            self._latest = self._folders[key]
            self._folders[key].read_record()
        self._latest = self._folders[key]
        return self._folders[key]

    def names(self) -> dict[int, Path]:
        """The real path of every open descriptor."""
        return {n: path for folder in self._folders.values() for n, path in folder.names.items()}

    def latest(self) -> Path:
        """The file, or else the folder, that was opened last."""
        return self._latest.latest if self._latest else Path()

    def replaced(self) -> bool:
        """Whether one of the folders was replaced since it was opened."""
        return any(folder.replaced() for folder in self._folders.values())

    def finish(self) -> dict[tuple[Path, str], Generation]:
        """The generation of each folder; raises as `OpenFolder.finish`."""
        return {key: folder.finish() for key, folder in self._folders.items()}

    def close(self) -> None:
        """Close all folders."""
        for folder in self._folders.values():
            folder.close()


def opened(
    read: Callable[[Opening], T], level: Verify, known: Generations | None = None
) -> tuple[T, Generations]:
    """Open all files of a reader, each artifact in one generation.

    read: opens folders and files with an Opening, and returns what the reader keeps.
    known: generations of an earlier call, which the folders must still be; default None.
    """
    for _ in range(_ATTEMPTS):
        opening = Opening(level, known or {})
        try:
            with damage_named(opening.latest, opening.names):
                result = read(opening)
                generations = opening.finish()
            if not opening.replaced():
                return result, generations
        except GristmillError:
            # Files of a folder that is being deleted are missing one by one.
            if not opening.replaced():
                raise
        finally:
            opening.close()
    raise StaleDataset(
        f"{opening.latest()}: its artifact was replaced {_ATTEMPTS} times while it was opened: open"
        " the dataset again when nothing builds it"
    )
