"""What an address asks for, and the artifacts and their tables, open between requests.

All that a page shows is in its address. The parameters `column`, `rule` and `value` come once for
each filter, in the same order.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, urlencode

from gristmill.browse.opening import open_table, tables_of
from gristmill.browse.source import Table
from gristmill.browse.table import RULES, Filter, Query
from gristmill.contract import GristmillError
from gristmill.families import kind_of_asset
from gristmill.layout import DROPS, WORK
from gristmill.provenance import find_artifacts, record
from gristmill.provenance.check_artifact import MALFORMED

PREFIX: Final = "/browse/"
PAGE: Final = 25
"""Rows of a page."""
_LONGEST: Final = 2_000
_MOST_FILTERS: Final = 10
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Asked:
    """What a page of an artifact shows.

    path: of the artifact's folder below the root, POSIX, "" for the root itself.
    asset, partition, table: which of its tables; "" for the main one.
    query, token: rows that are looked for. start: the first row, where nothing is looked for.
    number: the row of a page of one row. tokens: the first token that it shows.
    """

    path: str
    asset: str = ""
    partition: str = ""
    table: str = ""
    query: Query = field(default_factory=Query)
    token: str = ""
    start: int = 0
    number: int = 0
    tokens: int = 0

    @property
    def is_query(self) -> bool:
        """Whether rows are looked for, and not paged through."""
        return self.query != Query(descending=self.query.descending)

    def whole(self, table: str) -> str:
        """The address of all rows of a table of the same artifact."""
        return Asked(self.path, self.asset, self.partition, table).address("rows")

    def address(self, page: str, **changed: Any) -> str:
        """The address of a page with the same state but for what is changed.

        page: `rows`, `row` or `trace`. changed: fields of this class by name.
        """
        now = replace(self, **changed)
        query = now.query
        pairs = [
            *(("asset", now.asset), ("partition", now.partition), ("table", now.table)),
            ("q", query.search),
            *(
                pair
                for each in query.filters
                for pair in (("column", each.column), ("rule", each.rule), ("value", each.value))
            ),
            *(("sort", query.sort), ("desc", "1" if query.descending else "")),
            *(("token", now.token), ("start", str(now.start) if now.start else "")),
        ]
        kept = [pair for pair in pairs if pair[1] or pair[0] == "value"]
        if page != "rows":
            kept.append(("n", str(now.number)))
            kept += [("tokens", str(now.tokens))] if now.tokens else []
        return f"{PREFIX}{page}/{quote(now.path)}{'?' if kept else ''}{urlencode(kept)}"


def asked(path: str, given: Sequence[tuple[str, str]]) -> Asked:
    """What an address asks for.

    path: below the address of the page. given: the parameters in their order.

    Raises GristmillError for a parameter that is too long, no number, or no rule of a filter.
    """
    for name, value in given:
        if len(value) > _LONGEST:
            raise GristmillError(f"{name} has {len(value):,} characters, at most {_LONGEST:,}")
    one = dict(given)
    query = Query(one.get("q", ""), _filters(given), one.get("sort", ""), bool(one.get("desc")))
    return Asked(
        path.strip("/"),
        one.get("asset", ""),
        one.get("partition", ""),
        one.get("table", ""),
        query=query,
        token=one.get("token", ""),
        start=_number(one, "start"),
        number=_number(one, "n"),
        tokens=_number(one, "tokens"),
    )


def _filters(given: Sequence[tuple[str, str]]) -> tuple[Filter, ...]:
    columns, rules, values = (
        [value for name, value in given if name == wanted] for wanted in ("column", "rule", "value")
    )
    if not len(columns) == len(rules) == len(values):
        raise GristmillError("each filter has one column, one rule and one value")
    if len(columns) > _MOST_FILTERS:
        raise GristmillError(f"a page takes at most {_MOST_FILTERS} filters, not {len(columns)}")
    found = []
    for column, rule, value in zip(columns, rules, values, strict=True):
        if rule not in RULES:
            raise GristmillError(f"the filter rule {rule!r} is none of {', '.join(RULES)}")
        if column:
            found.append(Filter(column, rule, value))
    return tuple(found)


def _number(given: Mapping[str, str], name: str) -> int:
    value = given.get(name, "").strip() or "0"
    if not _NUMBER.fullmatch(value):
        raise GristmillError(f"{name} is {value[:40]!r}: a row number is 0 or more")
    return int(value)


_MOST_OPEN: Final = 16
_Stamp = tuple[tuple[int, int, int] | None, ...]


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
        self._keep = keep
        self._open: OrderedDict[tuple[Path, str, str, str], tuple[_Stamp, Table]] = OrderedDict()
        self._known: dict[Path, tuple[_Stamp, Shown]] = {}
        self._lock = Lock()

    def listed(self) -> Iterator[Shown]:
        """The artifacts, sorted by asset and partition, those with damaged records last."""
        found = [self._shown(each) for each in find_artifacts.artifacts(self.root)]
        if not found and self.root.is_dir() and not (self.root / DROPS).is_dir():
            found = [Shown("", "")]
        yield from sorted(found, key=lambda each: (bool(each.error), each.asset, each.partition))

    def tables(self, asked: Asked) -> list[str]:
        """The names of the tables of an artifact. Raises GristmillError, as `table`."""
        place = self.place(asked.path)
        return tables_of(place, asked.asset or None, _shared(place, asked.partition))

    def table(self, asked: Asked) -> Table:
        """The table that an address names, opened again where the artifact was published since.

        Raises NoArtifact where the address leads to none, GristmillError where it has no such table
        or cannot be read.
        """
        place = self.place(asked.path)
        name, shared = asked.table, _shared(place, asked.partition)
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
        if not is_artifact or not self._is_inside(place):
            raise NoArtifact(f"{path or 'this folder'} holds no published artifact")
        return place

    def _is_inside(self, place: Path) -> bool:
        """Whether a folder is in the root; a link to an artifact itself may lead elsewhere."""
        above = place if place == self.root else place.parent
        return above.resolve().is_relative_to(self.root.resolve())

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


def _shared(place: Path, partition: str) -> str | None:
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
