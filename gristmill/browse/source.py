"""Where the rows of a table are, and the table over them: pages, queries, sorted or not."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gristmill.browse.table import (
    SECONDS,
    Cell,
    Column,
    Found,
    Picture,
    Query,
    Raw,
    Row,
    StillCounting,
    Token,
    Type,
    Where,
    where_of,
)
from gristmill.contract import GristmillError

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType


Values = Mapping[str, Any]
"""What a row holds by column: a cell, or a list or an object of JSON."""


class Place(NamedTuple):
    """Where a source is looked through: the number of the next row, and its byte in a file."""

    row: int = 0
    byte: int = 0


@dataclass(frozen=True)
class Record:
    """A row as it is stored. error: what is wrong with it, or nothing."""

    number: int
    values: Values
    raw: Raw
    error: str = ""


@dataclass(frozen=True)
class Looked:
    """Rows that were looked at, and those of them that fit.

    numbers: of the rows that fit, ascending. frame: the columns that were asked for, of these.
    record, after: take the number of one that fits, and return it, and the place of the next row.
    """

    numbers: Sequence[int]
    frame: pl.DataFrame
    record: Callable[[int], Record]
    after: Callable[[int], Place]
    end: Place


class Source(Protocol):
    """The rows of a table."""

    @property
    def file(self) -> Path:
        """The first file of them."""

    @property
    def types(self) -> Mapping[str, Type]:
        """The columns in their order."""

    def count(self) -> int | None:
        """The number of rows, None where it is not known yet."""

    def read(self, start: int, count: int, seconds: float) -> Sequence[Record]:
        """Rows from a number on; fewer at the end. Raises StillCounting, BadInput."""

    def look(self, begin: Place, where: Where) -> Iterator[Looked]:
        """Look through the rows from a place on, some at a time. Raises BadInput for damage."""


@dataclass(frozen=True)
class Stored:
    """A table of an artifact, as its family declares it.

    name: of the table. open: opens its rows. searchable: columns that a search looks at.
    slow: columns that are made for each row, as decoded text; nothing sorts by them.
    also: values of columns that fit a search, too, as `where_of` takes them.
    sample: takes a row, and returns what `gristmill trace` takes: the sample, and its options.
    chosen: the options of `gristmill show` that choose this table, as {"split": "train"}.
    ids: columns whose value names a row, as `gristmill show` and a person call it.
    named: takes an id, and returns the number of its row, or the columns in which it is looked for,
        none where it is of another table; default: `ids` for every id.
    terms: option of `gristmill show` -> column that must have its value, as {"run": "run_id"}.
    drawn: takes a row and the options of `gristmill show`; yields a board, a grid or a position for
        a terminal. Other rows are shown by their columns and tokens alone.
    """

    name: str
    open: Callable[[], Source]
    searchable: Collection[str] = ()
    slow: Collection[str] = ()
    partition: str = ""
    also: Callable[[str], Mapping[str, Sequence[str]]] = lambda _: {}
    sample: Callable[[Record], tuple[str, Mapping[str, Any]]] | None = None
    pictures: Callable[[Record], Sequence[Picture]] = lambda _: ()
    tokens: Callable[[Record], Sequence[Token]] = lambda _: ()
    chosen: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[str] = ()
    named: Callable[[str], int | Sequence[str]] | None = None
    terms: Mapping[str, str] = field(default_factory=dict)
    drawn: Callable[[Record, Mapping[str, Any]], Iterable[RenderableType]] = lambda *_: ()


def cell(value: object) -> Cell:
    """A value as a cell: lists of words in one line, other lists and objects as their JSON."""
    import orjson

    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return orjson.dumps(value, default=str, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def type_of(values: Collection[object]) -> Type:
    """The type of a column by some of its values; text where they differ."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "truth"
    if kinds == {int}:
        return "integer"
    if kinds and kinds <= {int, float}:
        return "number"
    return "list" if kinds and kinds <= {list, dict, tuple} else "text"


SORTED_BYTES: Final = 512 << 20
"""Bytes that a sorted column may take in memory, with the numbers of its rows."""
MOST_ROWS: Final = 1_000
"""Rows of one page."""
_KEPT_ORDERS: Final = 2
OF_CONTENTS: Final = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
)
"""What drawings raise for contents that no law has looked at."""
_MOST_KEPT: Final = 400
"""Files that keep what passes found; the oldest are removed."""
_TOKEN: Final = re.compile(r"(s|r)(\d{1,15})(?:\.(\d{1,18}))?", re.ASCII)


class Table:
    """A table of an artifact, open for reading.

    place: the folder of the artifact. kind: key of its asset. name: of the table, "" for the only
    one. columns: in the stored order. counted: what they hold, once it is asked for.
    file: the first file that it is read from. texts: what columns hold, by name.
    origin: takes a row, and returns where it came from.
    """

    columns: Sequence[Column]
    counted: Any = None

    def __init__(
        self,
        place: Path,
        kind: str,
        stored: Stored,
        texts: Mapping[str, str],
        origin: Callable[[Record], Sequence[Mapping[str, object]]],
    ) -> None:
        self.place, self.kind, self.name = place, kind, stored.name
        self._stored, self._origin = stored, origin
        self._source: Source = stored.open()
        self.file = self._source.file
        self.columns = tuple(
            Column(
                name,
                kind_of,
                texts.get(name, ""),
                searchable=name in stored.searchable,
                filterable=kind_of != "list" or name in stored.searchable,
                sortable=kind_of != "list" and name not in stored.slow,
            )
            for name, kind_of in self._source.types.items()
        )
        self._sorts: dict[Query, _Sort] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int | None:
        """The number of rows; None for a file of lines that no record counts, until it is known."""
        return self._source.count()

    def rows(self, start: int, count: int, seconds: float = SECONDS) -> Sequence[Row]:
        """Returns up to `count` rows from `start` on, in the stored order; none after the last.

        seconds: how long lines may be counted to find the place.

        Raises StillCounting where that was too short, and GristmillError where a file is damaged
        as a whole. A single bad row has `Row.error`.
        """
        if start < 0 or not 0 < count <= MOST_ROWS:
            raise GristmillError(f"a page has 1 to {MOST_ROWS:,} rows, and rows count from 0")
        return [self._row(record) for record in self._source.read(start, count, seconds)]

    def find(
        self, query: Query, token: str = "", most: int = 25, seconds: float = SECONDS
    ) -> Found:
        """Returns the first rows that a query finds.

        token: of the answer before, to continue after it; "" (default) from the first row on. It is
            short, and stays valid in a link as long as the artifact stays. most: rows at most.
        seconds: how long rows are looked at.

        Raises StillCounting where that was too short for a sort, GristmillError for a column or a
        value that does not fit, a sort of a table that is too large, a token that is not of this
        table, and a damaged file.
        """
        import polars as pl

        if not 0 < most <= MOST_ROWS:
            raise GristmillError(f"a page has 1 to {MOST_ROWS:,} rows")
        where, until = where_of(query, self.columns, self._stored.also), time.monotonic() + seconds
        place = _place(token, bool(query.sort))
        try:
            if query.sort:
                return self._sorted(query, where, place.row, most, until)
            return self._found(where, place, most, until)
        except pl.exceptions.PolarsError as error:
            rule = " ".join(str(error).split())[:300]
            raise GristmillError(
                f"{self.file}: this search cannot be answered ({rule}): look for less"
            ) from error

    def look(self, where: Where) -> Iterator[Looked]:
        """Look through all rows, some at a time. Raises GristmillError for a damaged file."""
        return self._source.look(Place(), where)

    def until(self, end: float, looks: Iterator[Looked]) -> Iterator[Looked]:
        """Yield what is looked at until a time of `time.monotonic`. Raises StillCounting there."""
        for looked in looks:
            yield looked
            row, byte = looked.end
            done = byte / self.file.stat().st_size if byte else row / (self.count or row or 1)
            if time.monotonic() > end and done < 1:
                raise StillCounting(self.file, done)

    def numbers(self, query: Query, most: int) -> Sequence[int]:
        """Returns the numbers of some rows that a query finds: `most`, or a few more.

        It ends with the first step of a search that finds nothing after one that found some.
        """
        found: list[int] = []
        for looked in self.look(where_of(query, self.columns)):
            if found and (not looked.numbers or len(found) >= most):
                break
            found += looked.numbers
        return found

    def _found(self, where: Where, place: Place, most: int, until: float) -> Found:
        rows: list[Row] = []
        for looked in self._source.look(place, where):
            for number in looked.numbers[: most - len(rows)]:
                rows.append(self._row(looked.record(number)))
                place = looked.after(number)
            if len(rows) == most:
                break
            place = looked.end
            if time.monotonic() > until:
                break
        else:
            return Found(rows, place.row)
        return Found(rows, place.row, f"r{place.row}.{place.byte}")

    def _sorted(self, query: Query, where: Where, start: int, most: int, until: float) -> Found:
        with self._lock:
            sort = self._sorts.pop(query, None)
            sort = sort or _Sort(self, query, self.look(where))
            while len(self._sorts) >= _KEPT_ORDERS:
                del self._sorts[next(iter(self._sorts))]
            self._sorts[query] = sort
            try:
                order = sort.order(until)
            except StillCounting:
                raise
            except BaseException:
                del self._sorts[query]  # a look that failed has ended, and not with the last row
                raise
        stop = min(len(order), start + most)
        numbers = order[start:stop].tolist()
        # The file was passed: each row is found at once.
        rows = [row for number in numbers for row in self.rows(number, 1)]
        return Found(rows, self.count or 0, f"s{stop}" if stop < len(order) else "")

    def _row(self, record: Record) -> Row:
        return Row(
            record.number,
            {name: cell(record.values.get(name)) for name in self._source.types},
            record.raw,
            record.error,
            pictures=lambda: self._shown(self._stored.pictures, record),
            drawn=lambda options: self._shown(
                lambda shown: [*self._stored.drawn(shown, options)], record
            ),
            tokens=lambda: self._shown(self._stored.tokens, record),
            origin=lambda: self._said(self._origin, record),
        )

    def _shown(self, show: Callable[[Record], Sequence[Any]], record: Record) -> Sequence[Any]:
        return () if record.error else self._said(show, record)

    def _said(self, ask: Callable[[Record], Sequence[Any]], record: Record) -> Sequence[Any]:
        """What is asked of a row; what a damaged file raises names it."""
        try:
            return ask(record)
        except GristmillError:
            raise
        except OF_CONTENTS as error:
            rule = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise GristmillError(
                f"{record.raw.file}:{record.number + 1}: cannot be shown ({rule}): see "
                "`gristmill verify`"
            ) from error


class _Sort:
    """The rows that a query finds by the order of a column, looked through some at a time."""

    def __init__(self, table: Table, query: Query, looks: Iterator[Looked]) -> None:
        self._table, self._query, self._looks = table, query, looks
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._parts: list[pl.Series] = []
        self._used = 0.0
        self._order: npt.NDArray[np.int64] | None = None

    def order(self, until: float) -> npt.NDArray[np.int64]:
        """The numbers of the rows. Raises StillCounting after a time, GristmillError for too many.

        until: that time, of `time.monotonic`.
        """
        for looked in self._table.until(until, self._looks):
            part = looked.frame[self._query.sort]
            self._numbers.append(np.asarray(looked.numbers, np.int64))
            self._parts.append(part)
            self._used += part.estimated_size() + self._numbers[-1].nbytes
            if self._used > SORTED_BYTES:
                raise GristmillError(
                    f"{self._table.file}: the column {self._query.sort} takes more than "
                    f"{SORTED_BYTES >> 20} MiB, which is the most that is sorted: narrow the rows "
                    "with a filter"
                )
        if self._order is None:
            self._order = self._sorted()
        return self._order

    def _sorted(self) -> npt.NDArray[np.int64]:
        import polars as pl

        if not self._parts:
            return np.zeros(0, np.int64)
        keys = pl.concat(self._parts).to_frame("key")
        self._parts.clear()
        by = pl.arg_sort_by(
            "key", descending=self._query.descending, nulls_last=True, maintain_order=True
        )
        found: npt.NDArray[np.int64] = np.concatenate(self._numbers)[
            keys.select(by).to_series().to_numpy()
        ]
        self._numbers.clear()
        return found


def _place(token: str, is_sorted: bool) -> Place:
    """Where a token continues. Raises GristmillError for one of another query."""
    if not token:
        return Place()
    found = _TOKEN.fullmatch(token)
    if found is None or (found[1] == "s") != is_sorted:
        raise GristmillError(f"{token[:40]!r} is no place in this list of rows: search again")
    return Place(int(found[2]), int(found[3] or 0))


def keep_file(path: Path, octets: bytes) -> None:
    """Write what a pass found for other processes; a folder that takes nothing costs one more."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        temporary.write_bytes(octets)
        temporary.replace(path)
        files = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns)
        for old in files[:-_MOST_KEPT]:
            old.unlink(missing_ok=True)
