"""Verdicts: what the checks said about each partition of each asset, in a file of the data root.

A verdict counts for the data version that it was reached on. The tables of the SQLite file are in
`gristmill/data_root/states.py`. No check and no build depends on it: where it is broken, locked or
on a full disk, it is removed, and the work continues with verdicts in memory. What nobody has
looked at since is not checked, and says so; failed builds come from events: see `evaluations.py`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from gristmill import provenance
from gristmill.data_root.states import BUILT, FILE, TABLES
from gristmill.layout import WORK
from gristmill.provenance.record import MALFORMED

_FIELDS: Final = "v.subject, v.data_version, problem, cure, warns"
# A verdict on another data version than the published one does not count.
_COUNTING: Final = (
    "from verdicts v left join artifacts a using (asset, subject) where v.asset = ? and "
    "v.name = ? and (v.data_version = '' or coalesce(a.data_version, v.data_version) = "
    "v.data_version)"
)


@dataclass(frozen=True)
class Verdict:
    """What a check said about one partition.

    subject: the partition's key; empty for an asset without partitions; the path of a folder for
        what belongs to no partition.
    data_version: of the artifact that was looked at; empty if there was none.
    """

    subject: str
    data_version: str
    problem: str | None = None
    cure: str = ""
    warns: bool = False


@dataclass(frozen=True)
class Place:
    """A published artifact of an asset: where its record is, and its data version.

    stamp: of the record before it was read, as `stamp_of` returns it; default None: as it is now.
    """

    record: Path
    data_version: str
    stamp: int | None = None


class Verdicts:
    """The verdicts of one data root.

    Every method raises sqlite3.Error where the file cannot be used; `VerdictFile` does without.
    """

    def __init__(self, root: Path, connection: sqlite3.Connection) -> None:
        self._root, self._connection = root, connection

    def knows(self, asset: str) -> bool:
        """Whether the artifacts of an asset were registered once."""
        query = "select 1 from assets where asset = ?"
        return self._connection.execute(query, (asset,)).fetchone() is not None

    def register_all(self, asset: str, places: Mapping[str, Place]) -> None:
        """Say which artifacts of an asset there are; verdicts on others are forgotten."""
        with self._connection:
            self._connection.execute("delete from artifacts where asset = ?", (asset,))
            self._connection.execute("insert or ignore into assets values (?)", (asset,))
            for subject, place in places.items():
                self._register(asset, subject, place)

    def published(
        self, asset: str, subject: str, place: Place, void: Iterable[str] = (), run: str = ""
    ) -> None:
        """Say that a partition was built, or found to be current: its last build succeeded.

        void: names of the checks whose verdicts do not count for the new files; default none.
        """
        with self._connection:
            self._register(asset, subject, place)
            self._report(asset, {subject: (place.data_version, run)})
            for name in (BUILT, *void):
                self._forget(asset, name, subject)

    def reported(self, asset: str, versions: Mapping[str, tuple[str, str]]) -> None:
        """Say which data versions of an asset were reported, by partition, and in which runs."""
        with self._connection:
            self._report(asset, versions)

    def not_failed(self, asset: str, subject: str) -> None:
        """Say that the last build of a partition did not fail, though it published nothing."""
        with self._connection:
            self._forget(asset, BUILT, subject)

    def place(self, asset: str, subject: str) -> Path | None:
        """Returns where the record of a partition is, if it was registered."""
        query = "select record from artifacts where asset = ? and subject = ?"
        row = self._connection.execute(query, (asset, subject)).fetchone()
        return None if row is None else self._root / row[0]

    def subjects(self, asset: str) -> list[str]:
        """Returns the partitions of which something is published, as far as it was registered."""
        query = "select subject from artifacts where asset = ? order by subject"
        return [subject for (subject,) in self._connection.execute(query, (asset,))]

    def keep(self, asset: str, name: str, verdicts: Iterable[Verdict]) -> None:
        """Keep the verdicts of a check, in place of its earlier ones on the same partitions.

        A verdict on a data version that another one has replaced meanwhile is left out: what is
        kept of the new version stays. verdicts: at most one for each partition.
        """
        with self._connection:
            self._keep(asset, name, verdicts)

    def replace(self, asset: str, name: str, verdicts: Iterable[Verdict]) -> None:
        """Keep these verdicts of a check, which looked at everything that was registered."""
        with self._connection:
            self._connection.execute(
                "delete from verdicts where asset = ? and name = ? and subject not in "
                "(select subject from artifacts where asset = ?)",
                (asset, name, asset),
            )
            self._keep(asset, name, verdicts)

    def only(self, asset: str, name: str, verdicts: Iterable[Verdict]) -> None:
        """Keep these verdicts of a check, and no other ones."""
        with self._connection:
            self._connection.execute(
                "delete from verdicts where asset = ? and name = ?", (asset, name)
            )
            self._keep(asset, name, verdicts)

    def of(self, asset: str, name: str) -> list[Verdict]:
        """Returns the verdicts of a check, in the order of the partitions.

        One on another data version than the one that is published does not count.
        """
        return self._selected(asset, name)

    def problems(self, asset: str, name: str) -> list[Verdict]:
        """Returns the verdicts of a check on the partitions that fall short."""
        return self._selected(asset, name, "and problem is not null")

    def unpublished(self, asset: str, name: str) -> list[str]:
        """Returns the partitions with a verdict of a check and without an artifact."""
        query = f"select v.subject {_COUNTING} and a.subject is null"
        return [subject for (subject,) in self._connection.execute(query, (asset, name))]

    def missing(self, asset: str, name: str) -> list[str]:
        """Returns the published partitions on which a check has no verdict."""
        query = (
            "select a.subject from artifacts a left join verdicts v on v.asset = a.asset and "
            "v.subject = a.subject and v.name = ? and v.data_version in ('', a.data_version) "
            "where a.asset = ? and v.subject is null"
        )
        return [subject for (subject,) in self._connection.execute(query, (name, asset))]

    def revision(self) -> int:
        """Returns a number that changes when another process keeps verdicts."""
        (number,) = self._connection.execute("pragma data_version").fetchone()
        return int(number)

    def refresh(self, asset: str, of_bytes: Iterable[str]) -> None:
        """Forget the verdicts on artifacts that are gone or were built again elsewhere.

        Those of the checks `of_bytes` count for the very files; those of others also count for
        another build with the same data version.
        """
        query = "select subject, record, data_version, stamp from artifacts where asset = ?"
        changed = [
            (subject, record, version)
            for subject, record, version, stamp in self._connection.execute(query, (asset,))
            if stamp_of(f"{self._root}/{record}") != stamp
        ]
        if not changed:
            return
        with self._connection:
            for subject, record, version in changed:
                path = self._root / record
                stamp = stamp_of(str(path))
                with suppress(*MALFORMED):
                    found = provenance.read_record(path)
                    self._register(asset, subject, Place(path, found.data_version, stamp))
                    names = of_bytes if found.data_version == version else None
                    self._forget_verdicts(asset, subject, names)
                    continue
                if os.path.lexists(path):
                    # What was found before stays; that nothing was, no longer counts.
                    self._connection.execute(
                        "delete from verdicts where asset = ? and subject = ? and problem is null",
                        (asset, subject),
                    )
                else:
                    self._connection.execute(
                        "delete from artifacts where asset = ? and subject = ?", (asset, subject)
                    )
                    self._forget_verdicts(asset, subject, None)

    def _selected(self, asset: str, name: str, more: str = "") -> list[Verdict]:
        query = f"select {_FIELDS} {_COUNTING} {more} order by v.subject"
        return [Verdict(*row) for row in self._connection.execute(query, (asset, name))]

    def _keep(self, asset: str, name: str, verdicts: Iterable[Verdict]) -> None:
        rows = [
            {
                "asset": asset,
                "name": name,
                "subject": given.subject,
                "version": given.data_version,
                "problem": given.problem,
                "cure": given.cure,
                "warns": given.warns,
                "now": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            }
            for given in verdicts
        ]
        self._connection.executemany(
            "insert or replace into verdicts select :asset, :name, :subject, :version, :problem, "
            ":cure, :warns, case when :problem is not null then coalesce((select since from "
            "verdicts where asset = :asset and name = :name and subject = :subject and problem "
            "is not null), :now) end where :version = '' or not exists (select 1 from "
            "artifacts where asset = :asset and subject = :subject and data_version != :version)",
            rows,
        )

    def _register(self, asset: str, subject: str, place: Place) -> None:
        row = (
            asset,
            subject,
            os.path.relpath(place.record, self._root),
            place.data_version,
            stamp_of(str(place.record)) if place.stamp is None else place.stamp,
        )
        self._connection.execute("insert or replace into artifacts values (?, ?, ?, ?, ?)", row)

    def _report(self, asset: str, versions: Mapping[str, tuple[str, str]]) -> None:
        rows = [(asset, subject, *reported) for subject, reported in versions.items()]
        # Who reads it from events does not know the run.
        self._connection.executemany(
            "insert into reported values (?, ?, ?, ?) on conflict do update set run = iif("
            "excluded.run = '' and excluded.data_version = data_version, run, excluded.run), "
            "data_version = excluded.data_version",
            rows,
        )

    def _forget(self, asset: str, name: str, subject: str) -> None:
        self._connection.execute(
            "delete from verdicts where asset = ? and name = ? and subject = ?",
            (asset, name, subject),
        )

    def _forget_verdicts(self, asset: str, subject: str, names: Iterable[str] | None) -> None:
        """Forget those of some checks, or of all but `built`."""
        if names is None:
            self._connection.execute(
                "delete from verdicts where asset = ? and subject = ? and name != ?",
                (asset, subject, BUILT),
            )
        for name in names or ():
            self._forget(asset, name, subject)


def stamp_of(path: str) -> int:
    """Returns a number from time and inode of a record; a replaced one differs, none has 0."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return (found.st_mtime_ns ^ (found.st_ino << 20)) & 0x7FFF_FFFF_FFFF_FFFF


_WAIT_SECONDS: Final = 30
_SUFFIXES: Final = ("", "-wal", "-shm")

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class VerdictFile:
    """The verdicts of a data root, in the file or in memory. `kept` makes and closes it."""

    def __init__(self, root: Path, warn: Callable[[str], object]) -> None:
        self._path, self._warn = root.absolute() / WORK / FILE, warn
        self.is_lost = False
        """Whether the file could not be used, so that these verdicts are in memory."""
        try:
            self._path.parent.mkdir(exist_ok=True)  # a data root that is gone is not made
            connection = self._opened()
        except (OSError, sqlite3.Error) as error:
            connection = self._in_memory(error)
        self._connection = connection
        self.verdicts = Verdicts(root.absolute(), connection)

    def do(self, work: Callable[[Verdicts], Result]) -> Result:
        """Returns what `work` returns; called again with empty verdicts if the file fails.

        What it does besides must bear a second call.
        """
        try:
            return work(self.verdicts)
        except sqlite3.Error as error:
            if self.is_lost:
                raise  # of a database in memory
            self._connection.close()
            self._connection = self._in_memory(error)
            self.verdicts = Verdicts(self._path.parent.parent, self._connection)
        return work(self.verdicts)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        try:
            return _prepared(self._path)
        except sqlite3.Error:  # or of an older version: nothing in it counts
            self._remove()
            return _prepared(self._path)

    def _in_memory(self, error: Exception) -> sqlite3.Connection:
        self.is_lost = True
        self._remove()
        self._warn(
            f"what the checks find cannot be kept in {self._path}: {error}. They work without it; "
            "what was checked before counts as not checked"
        )
        return _prepared(":memory:")

    def _remove(self) -> None:
        for suffix in _SUFFIXES:
            with suppress(OSError):
                self._path.with_name(f"{FILE}{suffix}").unlink(missing_ok=True)


@contextmanager
def kept(root: Path, warn: Callable[[str], object] = log.warning) -> Iterator[VerdictFile]:
    """Open the verdicts of a data root; arguments as of `VerdictFile`."""
    file = VerdictFile(root, warn)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def opened(root: Path) -> Iterator[Verdicts]:
    """Open the verdicts of a data root, for what is done at once."""
    with kept(root) as file:
        yield file.verdicts


def _prepared(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS)
    try:
        # A kill loses nothing, and a commit need not wait for the disk.
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(TABLES)
        connection.execute("select warns, since from verdicts limit 0")  # 0.9 had neither
    except sqlite3.Error:
        connection.close()
        raise
    return connection
