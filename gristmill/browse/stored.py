"""A table over its source: pages of rows, what a query finds, in the stored order or sorted."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.browse.source import Place, Record, Source, Stored, cell
from gristmill.browse.table import SECONDS, Column, Found, Query, Row, Table
from gristmill.browse.where import Where, where_of
from gristmill.contract import GristmillError

SORTED_BYTES: Final = 512 << 20
"""Bytes that a sorted column may take in memory, with the numbers of its rows."""
MOST_ROWS: Final = 1_000
"""Rows of one page."""
_KEPT_ORDERS: Final = 2
_OF_CONTENTS: Final = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
)
"""What drawings raise for contents that no law has looked at."""
_TOKEN: Final = re.compile(r"(s|r)(\d{1,15})(?:\.(\d{1,18}))?", re.ASCII)


class StoredTable(Table):
    """A table as a family declares it.

    texts: what columns hold, by name. origin: takes a row, and returns where it came from.
    """

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
        self._orders: dict[Query, npt.NDArray[np.int64]] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int | None:
        """The number of rows, None where it is not known yet."""
        return self._source.count()

    def rows(self, start: int, count: int, seconds: float = SECONDS) -> Sequence[Row]:
        """Returns rows in the stored order; see `Table.rows`."""
        if start < 0 or not 0 < count <= MOST_ROWS:
            raise GristmillError(f"a page has 1 to {MOST_ROWS:,} rows, and rows count from 0")
        return [self._row(record) for record in self._source.read(start, count, seconds)]

    def find(
        self, query: Query, token: str = "", most: int = 25, seconds: float = SECONDS
    ) -> Found:
        """Returns the next rows that a query finds; see `Table.find`."""
        if not 0 < most <= MOST_ROWS:
            raise GristmillError(f"a page has 1 to {MOST_ROWS:,} rows")
        where = where_of(query, self.columns)
        place = _place(token, bool(query.sort))
        if query.sort:
            return self._sorted(query, where, place.row, most)
        return self._found(where, place, most, time.monotonic() + seconds)

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

    def _sorted(self, query: Query, where: Where, start: int, most: int) -> Found:
        with self._lock:
            order = self._orders.pop(query, None)
            if order is None:
                order = self._order(query, where)
            self._orders[query] = order
            while len(self._orders) > _KEPT_ORDERS:
                del self._orders[next(iter(self._orders))]
        stop = min(len(order), start + most)
        numbers = order[start:stop].tolist()
        # The file was passed: each row is found at once.
        rows = [row for number in numbers for row in self.rows(number, 1)]
        return Found(rows, self.count or 0, f"s{stop}" if stop < len(order) else "")

    def _order(self, query: Query, where: Where) -> npt.NDArray[np.int64]:
        """The numbers of the rows that fit, by the column. Raises GristmillError for too many."""
        import polars as pl

        numbers: list[npt.NDArray[np.int64]] = []
        parts: list[pl.Series] = []
        used = 0.0
        for looked in self._source.look(Place(), where):
            part = looked.frame[query.sort]
            numbers.append(np.asarray(looked.numbers, np.int64))
            parts.append(part)
            used += part.estimated_size() + numbers[-1].nbytes
            if used > SORTED_BYTES:
                raise GristmillError(
                    f"{self.file}: the column {query.sort} takes more than {SORTED_BYTES >> 20} "
                    "MiB, which is the most that is sorted: narrow the rows with a filter"
                )
        if not parts:
            return np.zeros(0, np.int64)
        order = (
            pl.concat(parts)
            .to_frame("key")
            .select(
                pl.arg_sort_by(
                    "key", descending=query.descending, nulls_last=True, maintain_order=True
                )
            )
        )
        found: npt.NDArray[np.int64] = np.concatenate(numbers)[order.to_series().to_numpy()]
        return found

    def _row(self, record: Record) -> Row:
        return Row(
            record.number,
            {name: cell(record.values.get(name)) for name in self._source.types},
            record.raw,
            record.error,
            pictures=lambda: self._shown(self._stored.pictures, record),
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
        except _OF_CONTENTS as error:
            rule = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise GristmillError(
                f"{record.raw.file}:{record.number + 1}: cannot be shown ({rule}): see "
                "`gristmill verify`"
            ) from error


def _place(token: str, is_sorted: bool) -> Place:
    """Where a token goes on. Raises GristmillError for one of another query."""
    if not token:
        return Place()
    found = _TOKEN.fullmatch(token)
    if found is None or (found[1] == "s") != is_sorted:
        raise GristmillError(f"{token[:40]!r} is no place in this list of rows: search again")
    return Place(int(found[2]), int(found[3] or 0))
