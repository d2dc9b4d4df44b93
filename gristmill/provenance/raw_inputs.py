"""Raw files as inputs of a record: listed, sized and hashed, each hash computed once."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from pydantic import PrivateAttr

from gristmill import families
from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import sha256_file, sha256_of
from gristmill.inbox.marks import FORGOTTEN
from gristmill.layout import DROPS, PULLED, WORK
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import RECORD, Input, Record, digest, read_inputs, read_record
from gristmill.untrusted.files import (
    CLOCK_TICK_NS,
    REFUSE_LINKS,
    LinkRule,
    equal_rule,
    open_file,
    stat_file,
)
from gristmill.untrusted.walk import Entry, hard_links

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size, and times of the last change of contents and of the inode."""


def stamp_of(found: os.stat_result) -> Stamp:
    """The stamp of a file."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_stamps(file: Path) -> Mapping[str, Stamp]:
    """The stamps in a file of notes, by POSIX path; none where it cannot be read."""
    try:
        entries = json.loads(file.read_bytes())
        return {path: _stamp(*values) for path, values in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _stamp(device: int, inode: int, size: int, mtime_ns: int, ctime_ns: int) -> Stamp:
    stamp = device, inode, size, mtime_ns, ctime_ns
    if not all(type(number) is int for number in stamp):
        raise TypeError("a stamp has five integers")
    return stamp


def write_stamps(file: Path, stamps: Mapping[str, Stamp]) -> None:
    """Write notes. Without them files are hashed again, so a full disk is no error here.

    Nothing is written while another process writes the same notes.
    """
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.new")
        with new.open("a") as target:
            fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(target.fileno()), new.stat()):
                return  # another process wrote and renamed it before the lock was held
            try:
                target.truncate(0)  # what a killed process left
                target.write(json.dumps(stamps))
                target.flush()
                new.replace(file)
            except OSError:
                new.unlink()
                raise


class DropHashes:
    """The sums of one drop."""

    def __init__(self, root: Path, drop: Path) -> None:
        self._drop = drop
        name = "@".join(drop.relative_to(root / DROPS).parts)
        self._file = root / WORK / DROPS / f"{name}.json"

    @cached_property
    def _kept(self) -> dict[str, tuple[str, Stamp]]:
        split = ((key.partition(" "), stamp) for key, stamp in read_stamps(self._file).items())
        return {name: (sha256, stamp) for (sha256, _, name), stamp in split}

    def known(self, name: str, stamp: Stamp) -> str | None:
        """The sha256 of a file that has this stamp; None where it is not known.

        name: its path in the drop; that of a drop that is a file is the file's name.
        """
        sha256, kept = self._kept.get(name, ("", None))
        return sha256 if kept == stamp else None

    def of_now(self, name: str, links: LinkRule = REFUSE_LINKS) -> str | None:
        """The sha256 of a file as it is on the disk; None where it is not known."""
        if name not in self._kept:
            return None
        path = self._drop / name if self._drop.is_dir() else self._drop
        found = stat_file(path, root=self._drop.parent, links=links)
        return self.known(name, stamp_of(found))

    def keep(self, hashed: Mapping[str, tuple[str, Stamp]], *, is_own: bool = False) -> None:
        """Keep sums, with the stamps from before the files were hashed.

        hashed: sha256 and stamp by name, as for `known`.
        is_own: whether this process wrote the files; default False: the sum of a file that changed
            a moment ago is not kept.
        """
        latest = time.time_ns() - (0 if is_own else CLOCK_TICK_NS)
        new = {name: each for name, each in hashed.items() if is_own or each[1][4] < latest}
        if not new:
            return
        self.__dict__.pop("_kept", None)  # another process may have kept others meanwhile
        kept = {
            name: each
            for name, each in self._kept.items()
            if os.path.lexists(self._drop / name if name != self._drop.name else self._drop)
        }
        kept |= new
        self.__dict__["_kept"] = kept
        entries = {f"{sha256} {name}": stamp for name, (sha256, stamp) in kept.items()}
        write_stamps(self._file, entries)


def drop_of(root: Path, path: Path) -> Path | None:
    """The drop that a raw file belongs to; None for a file outside of `drops/`."""
    parts = path.relative_to(root).parts
    if parts[0] != DROPS:
        return None
    # An inbox may be in that of its family, as `puzzles/recipes`.
    depth = 2 if "/".join(parts[1:3]) in families.inboxes_of("".join(parts[1:2])) else 1
    # The tombstones of a file are beside it.
    drop = root.joinpath(*parts[: depth + 2])
    own = drop.with_name(drop.name.removesuffix(f".{FORGOTTEN}"))
    return own if len(parts) > depth + 1 else None


def name_in(drop: Path, path: Path) -> str:
    """The name of a file in a drop, as for `DropHashes.known`."""
    return path.relative_to(drop).as_posix() if drop in path.parents else path.name


class RawFile(Input):
    """A raw file that was listed as an input in this process.

    stamp: from before it was hashed, or found to be one whose hash is known; not in records.
    """

    _stamp: Stamp = PrivateAttr()

    __hash__ = Input.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Input) and self.model_dump() == other.model_dump()

    @property
    def stamp(self) -> Stamp:
        """The stamp of `listed_at`."""
        return self._stamp

    def listed_at(self, stamp: Stamp) -> RawFile:
        """This file, with its stamp."""
        self._stamp = stamp
        return self


Known = Mapping[tuple[str, int, int], tuple[str, int]]
"""By (path, bytes, mtime_ns) the sha256 of a file that was hashed before, and until when it holds:
for a file whose inode did not change after this time, in ns."""


def known_hashes(record_path: Path) -> dict[tuple[str, int, int], tuple[str, int]]:
    """Hashes by (path, bytes, mtime_ns) of the raw inputs of a published record.

    A file that kept its size and times need not be read again; `verify` reads it.
    Empty where the record or its list of inputs is not as it was written, and of a record that was
    pulled: it speaks of the files of another host.
    """
    if not record_path.exists():
        return {}
    try:
        record = read_record(record_path)
        if not is_as_written(_place(record_path)[0], record):
            return {}
        inputs = read_inputs(record, record_path)
    except GristmillError:
        return {}  # whoever builds finds the same, and says so
    if _was_pulled(record_path, record):
        return {}
    return {
        (item.path, item.bytes, item.mtime_ns): (item.sha256, record.trusted_ns)
        for item in inputs
        if item.path and item.sha256 and item.bytes is not None and item.mtime_ns is not None
    }


def _place(record_path: Path) -> tuple[Path, str | None]:
    """The folder of a record, and its partition where several share the folder."""
    if record_path.name == RECORD:
        return record_path.parent, None
    return record_path.parent.parent, record_path.stem


def pulled_note(root: Path, artifact: str, partition: str | None) -> Path:
    """The file that holds the digest of an artifact's record where that was pulled last."""
    return root / WORK / PULLED / digest([artifact, partition])[:32]


def _was_pulled(record_path: Path, record: Record) -> bool:
    folder, partition = _place(record_path)
    root = Artifact(folder, record_path).data_root(record)
    if root is None:
        return False
    try:
        return pulled_note(root, record.artifact, partition).read_text() == record.digest
    except (OSError, ValueError):
        return False


def is_as_written(folder: Path, record: Record) -> bool:
    """Whether nobody edited a record, or the list of inputs that belongs to it."""
    return record.digest == record.computed_digest() and is_as_listed(folder, record)


def is_as_listed(folder: Path, record: Record) -> bool:
    """Whether nobody edited the list of inputs that belongs to a record."""
    listed = record.inputs_file
    if listed is None:
        return True
    path = folder / listed.path
    return path.is_file() and sha256_file(path) == listed.sha256


def raw_inputs(
    root: Path,
    files: Iterable[Path],
    asset: str | None,
    partition: str | None,
    known: Known,
    links: LinkRule = REFUSE_LINKS,
) -> list[Input]:
    """Inputs for raw files, in the given order.

    asset: of the drop; None for files of an evaluation set.
    known: from `known_hashes`; files in it are not hashed, if their inode is as old.
    links: what happens to links below the inbox; default: they are refused.

    Raises BadInput where one is no regular file, belongs to another user and has names outside of
    the drop, or has a name that is not UTF-8; OSError where a file cannot be read.
    """
    sums = _Sums(root, links)

    def describe(file: Path) -> tuple[Input, Entry]:
        parts = file.relative_to(root).parts
        inbox = root.joinpath(*parts[:2]) if parts[0] == "drops" and len(parts) > 2 else file.parent
        path = file.relative_to(root).as_posix()
        if not path.isascii():
            _check_name(file, root)
        stat = stat_file(file, root=inbox, links=links)
        earlier = known.get((path, stat.st_size, stat.st_mtime_ns))
        stamp = stamp_of(stat)
        if earlier is not None and stat.st_ctime_ns <= earlier[1]:
            sha256 = earlier[0]
        else:
            sha256 = sums.of(file, inbox, stamp)
        described = RawFile(
            asset=asset,
            partition=partition,
            path=path,
            bytes=stat.st_size,
            sha256=sha256,
            mtime_ns=stat.st_mtime_ns,
        ).listed_at(stamp)
        # What a link points to is in a folder that the owner of the data root named.
        owner = stat.st_uid if file.is_symlink() else file.parent.stat().st_uid
        return described, Entry(path, stat, None, owner)

    with ThreadPoolExecutor() as threads:
        pairs = list(threads.map(describe, files))
    sums.keep()
    refused, _noted = hard_links(entry for _, entry in pairs)
    for path, reason in refused.items():
        raise BadInput(root / path, reason)
    return [described for described, _ in pairs]


class _Sums:
    """The sums of raw files: kept ones, and those that are computed now."""

    def __init__(self, root: Path, links: LinkRule) -> None:
        self._root, self._links = root, links
        self._kept: dict[Path, DropHashes] = {}
        self._hashed: dict[Path, dict[str, tuple[str, Stamp]]] = {}

    def of(self, file: Path, inbox: Path, stamp: Stamp) -> str:
        """The sha256 of a file with this stamp."""
        drop = drop_of(self._root, file)
        if drop is None:
            return self._hash(file, inbox)
        name, kept = name_in(drop, file), self._kept.setdefault(drop, DropHashes(self._root, drop))
        if (sha256 := kept.known(name, stamp)) is None:
            sha256 = self._hash(file, inbox)
            self._hashed.setdefault(drop, {})[name] = sha256, stamp
        return sha256

    def keep(self) -> None:
        """Keep what was computed, so that no file is hashed twice."""
        for drop, hashed in self._hashed.items():
            self._kept[drop].keep(hashed)

    def _hash(self, file: Path, inbox: Path) -> str:
        with open_file(file, root=inbox, links=self._links, buffering=0) as opened:
            return sha256_of(opened)


def refuse_equal(root: Path, inputs: Iterable[Input]) -> None:
    """Raise BadInput where two inputs of one build have the same bytes."""
    first: dict[str | None, str | None] = {}
    for item in inputs:
        other = first.setdefault(item.sha256, item.path)
        if item.bytes and other != item.path:
            raise BadInput(root / str(item.path), equal_rule(str(other)))


def _check_name(file: Path, root: Path) -> None:
    """Raise BadInput for a name below the root that is not UTF-8, which no record can hold."""
    for path in (file, *file.parents[: len(file.relative_to(root).parts) - 1]):
        try:
            path.name.encode()
        except UnicodeEncodeError as error:
            shown = os.fsencode(path).decode(errors="backslashreplace")
            what = "file" if path == file else "folder"
            raise BadInput(shown, f"the name is not UTF-8: rename the {what}") from error
