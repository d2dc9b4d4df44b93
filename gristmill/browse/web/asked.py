"""What an address of a page asks for: all that a page shows is in its address."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from gristmill.browse.table import RULES, Filter, Query
from gristmill.contract import GristmillError

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

        page: `rows`, `row`, `trace` or `history`. changed: fields of this class by name.
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

    A filter without a column or a value is none. Raises GristmillError for a parameter that is too
    long, no number, or no rule of a filter.
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
        if column and value:
            found.append(Filter(column, rule, value))
    return tuple(found)


def _number(given: Mapping[str, str], name: str) -> int:
    value = given.get(name, "").strip() or "0"
    if not _NUMBER.fullmatch(value):
        raise GristmillError(f"{name} is {value[:40]!r}: a row number is 0 or more")
    return int(value)
