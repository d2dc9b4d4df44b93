"""The artifacts that the pages show, their state, lineage and checks, and their open tables."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, cast

from gristmill.browse.opening import open_table, tables_of
from gristmill.browse.source import OF_CONTENTS, Table
from gristmill.browse.statistics import FORM, Statistics
from gristmill.browse.table import SECONDS
from gristmill.browse.web.asked import Asked
from gristmill.contract import GristmillError
from gristmill.families import kind_of_asset
from gristmill.layout import DROPS, WORK
from gristmill.provenance import find_artifacts, inventory, record
from gristmill.provenance.list_artifacts import CURRENT, list_artifacts
from gristmill.provenance.raw_inputs import drop_of
from gristmill.provenance.record import MALFORMED

_MOST_OPEN: Final = 16
_FRESH: Final = 10.0
"""Seconds, and times of what it took, after which states are looked at again."""

Key = tuple[str, str]
"""An artifact: the path of its folder below the root of the pages, and its partition or ""."""
_Stamp = tuple[tuple[int, int, int] | None, ...]


class Near(NamedTuple):
    """An artifact, or a drop, beside another one in the lineage. key: None for no page of it."""

    asset: str
    partition: str
    key: Key | None = None


@dataclass(frozen=True)
class Known:
    """What is known of all artifacts below a root.

    states: state and reason, as `gristmill ls` says them. made_from, made_into: the lineage.
    error: why states are not known.
    """

    states: Mapping[Key, tuple[str, str]] = field(default_factory=dict)
    made_from: Mapping[Key, Sequence[Near]] = field(default_factory=dict)
    made_into: Mapping[Key, Sequence[Near]] = field(default_factory=dict)
    error: str = ""

    def sums(self, keys: Iterable[Key]) -> list[tuple[str, int]]:
        """How many of some artifacts are current, and how many are not."""
        found = (self.states[key][0] == CURRENT for key in keys if key in self.states)
        return sorted(Counter("current" if each else "out of date" for each in found).items())


class Standing:
    """The states and the lineage of all artifacts below a root, looked at in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._known: Known | None = None
        self._again = 0.0

    def begin(self) -> None:
        """Look in a thread, where none looks and what is known is not fresh."""
        with self._lock:
            is_due = self._thread is None or not self._thread.is_alive()
            if is_due and time.monotonic() >= self._again:
                self._thread = threading.Thread(target=self._look, daemon=True)
                self._thread.start()

    def known(self) -> Known | None:
        """What is known; the first time it waits for it, for two seconds at most: then None."""
        self.begin()
        if self._known is None and self._thread is not None:
            self._thread.join(SECONDS)
        return self._known

    def _look(self) -> None:
        from gristmill.data_root.states import DropStates

        begin = time.monotonic()
        try:
            listed = list_artifacts(self._root, state_of=lambda above: DropStates(above).of)
            states = {
                (self._below(Path(each.folder)), each.partition or ""): (each.state, each.why)
                for each in listed
            }
            self._known = Known(states, *self._lineage())
        except (GristmillError, *OF_CONTENTS) as error:
            self._known = Known(error=" ".join(str(error).split()))
        end = time.monotonic()
        self._again = end + _FRESH * max(1.0, end - begin)

    def _below(self, folder: Path) -> str:
        return folder.relative_to(self._root).as_posix() if folder != self._root else ""

    def _lineage(self) -> tuple[dict[Key, list[Near]], dict[Key, list[Near]]]:
        before, after = dict[Key, list[Near]](), dict[Key, list[Near]]()
        for item, made, inputs in find_artifacts.readable(find_artifacts.artifacts(self._root)):
            own = Near(made.asset, made.partition or "")
            own = own._replace(key=(self._below(item.folder), own.partition))
            root, given = item.data_root(made) or self._root, dict[Near, None]()
            for each in inputs:
                path = root / (each.path or "")
                if each.data_version is None:
                    drop = drop_of(root, path) if each.is_of_drop else None
                    name = each.path if drop is None else drop.relative_to(root).as_posix()
                    given[Near("", name or each.asset or "")] = None
                    continue
                near = Near(each.asset or "", each.partition or "")
                if path.is_relative_to(self._root):
                    near = near._replace(key=(self._below(path), near.partition))
                    after.setdefault(near.key or ("", ""), []).append(own)
                given[near] = None
            before[own.key or ("", "")] = list(given)
        return before, after


def checks(root: Path, own: record.Record) -> list[tuple[str, str, str]]:
    """The checks that looked at an artifact: name, what was found, and `ok`, `note` or `bad`.

    root: the data root. Where none noted anything, the notes of the laws are those of the record.
    """
    from gristmill.data_root.states import subject_of, verdicts

    found = [
        (name, problem, ("note" if warns else "bad") if problem else "ok")
        for name, problem, warns in verdicts(root, own.asset, subject_of(own), own.data_version)
    ]
    if not any(severity == "note" for *_, severity in found) and own.notes is not None:
        found += [(each.law, f"{each.where}: {each.found}", "note") for each in own.notes.named]
    return found


class NoArtifact(GristmillError):
    """There is no published artifact at an address."""


@dataclass(frozen=True)
class Shown:
    """An artifact in the list.

    path: of its folder below the root. asset, partition: as recorded, "" where there is none.
    rows: as its family counts them, None where nothing counts them. bytes: of its files.
    built: ISO 8601 in UTC, to the minute. error: why its record cannot be read.
    """

    path: str
    asset: str
    partition: str = ""
    rows: int | None = None
    bytes: int = 0
    built: str = ""
    error: str = ""

    @property
    def key(self) -> Key:
        """What states and lineage know it by."""
        return self.path, self.partition

    @property
    def family(self) -> str:
        """The family, or `tokenizers`; "" where the record cannot be read."""
        return self.asset.partition("/")[0]

    @property
    def address(self) -> str:
        """The address of its rows."""
        return Asked(self.path, self.asset, self.partition).address("rows")


class Shelf:
    """The published artifacts of a data root, or one artifact without a data root.

    root: the data root, or the folder of the artifact. Nothing outside of it is shown.
    keep: where the places of lines are kept, None for this process alone.
    """

    def __init__(self, root: Path, keep: Path | None = None) -> None:
        self.root = root.absolute()
        self.data_root = find_artifacts.recorded_root(self.root) or self.root
        self.standing = Standing(self.root)
        self._keep = keep
        self._open: OrderedDict[tuple[Path, str, str, str], tuple[_Stamp, Table]] = OrderedDict()
        self._known: dict[Path, tuple[_Stamp, Shown]] = {}
        self._lock = threading.Lock()

    def listed(self) -> Iterator[Shown]:
        """The artifacts, sorted by asset and partition, those with damaged records last."""
        found = [self._shown(each) for each in find_artifacts.artifacts(self.root)]
        if not found and self.root.is_dir() and not (self.root / DROPS).is_dir():
            found = [Shown("", "")]
        yield from sorted(found, key=lambda each: (bool(each.error), each.asset, each.partition))

    def record(self, asked: Asked) -> record.Record | None:
        """The record of an artifact; None where it has none that can be read."""
        place = self.place(asked.path)
        shared = shared_key(place, asked.partition)
        try:
            return record.read_record(record.record_path(place, shared, shared is not None))
        except MALFORMED:
            return None

    def tables(self, asked: Asked) -> list[str]:
        """The names of the tables of an artifact. Raises GristmillError, as `table`."""
        place = self.place(asked.path)
        return tables_of(place, asked.asset or None, shared_key(place, asked.partition))

    def statistics(self, asked: Asked) -> Statistics:
        """What the columns of the table hold, kept by the data version. Raises as `table`."""
        table = self.table(asked)
        with self._lock:
            if table.counted is None:
                own, path = self.record(asked), None
                if self._keep is not None and own is not None:
                    named = (FORM, own.asset, own.partition, own.data_version, table.name)
                    path = self._keep / f"{sha256(repr(named).encode()).hexdigest()[:32]}.values"
                table.counted = Statistics(table, path)
            return cast(Statistics, table.counted)

    def table(self, asked: Asked) -> Table:
        """The table that an address names, opened again where the artifact was published since.

        Raises NoArtifact where the address leads to none, GristmillError where it has no such table
        or cannot be read.
        """
        place = self.place(asked.path)
        name, shared = asked.table, shared_key(place, asked.partition)
        if not name and shared is not None:
            name = next(iter(tables_of(place, asked.asset or None, shared)), "")
        key, stamp = (place, asked.asset, asked.partition, name), _stamp(place)
        with self._lock:
            known = self._open.get(key)
            if known is not None and known[0] == stamp:
                self._open.move_to_end(key)
                return known[1]
        table = open_table(place, asked.asset or None, name or None, self._keep)
        with self._lock:
            self._open[key] = stamp, table
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return table

    def place(self, path: str) -> Path:
        """The folder of an artifact. path: below the root. Raises NoArtifact for any other."""
        parts = path.split("/") if path else []
        hidden = any(part in ("", ".", "..", WORK) or not part.isprintable() for part in parts)
        place = self.root.joinpath(*parts) if not hidden else self.root
        if hidden or parts[:1] == [DROPS]:
            raise NoArtifact("there is no published artifact at this address")
        try:
            is_artifact = bool(find_artifacts.artifacts_in(place)) or not parts
        except (OSError, ValueError):
            is_artifact = False
        # A link to an artifact itself may lead elsewhere.
        above = place if place == self.root else place.parent
        if not is_artifact or not above.resolve().is_relative_to(self.root.resolve()):
            raise NoArtifact(f"{path or 'this folder'} holds no published artifact")
        return place

    def _shown(self, found: find_artifacts.Artifact) -> Shown:
        stamp = _stamp(found.record_path)
        known = self._known.get(found.record_path)
        if known is None or known[0] != stamp:
            known = self._known[found.record_path] = stamp, self._read(found)
        return known[1]

    def _read(self, found: find_artifacts.Artifact) -> Shown:
        path = found.folder.relative_to(self.root).as_posix()
        path = "" if path == "." else path
        try:
            inventory.check_inside(found.record_path, found.folder)
            read = record.read_record(found.record_path)
        except MALFORMED as error:
            return Shown(path, "", found.partition or "", error=" ".join(str(error).split()))
        kind = kind_of_asset(read.asset)
        return Shown(
            path,
            read.asset,
            read.partition or "",
            None if kind is None else kind.rows_of(read.counts),
            sum(output.bytes for output in read.outputs),
            read.created.strftime("%Y-%m-%d %H:%M"),
        )


def shared_key(place: Path, partition: str) -> str | None:
    """A partition in a folder that several share, else None."""
    return partition if partition and not (place / record.RECORD).exists() else None


def _stamp(path: Path) -> _Stamp:
    """What changes where an artifact or a record is published again."""
    found: list[tuple[int, int, int] | None] = []
    for each in (path, path / record.RECORD, path / record.SHARED_RECORDS):
        try:
            stat = os.stat(each)  # noqa: PTH116 (a path that may be no folder)
            found.append((stat.st_dev, stat.st_ino, stat.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)
