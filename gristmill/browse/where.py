"""A query as an expression over columns, and as words that a fitting row must contain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gristmill.browse.table import RULES, Column, Filter, Query
from gristmill.contract import GristmillError

if TYPE_CHECKING:
    import polars as pl

_WORDS: Final = re.compile(r"[^\W_]+")
_MOST_CHARACTERS: Final = 1_000
"""Of a text that is looked for."""


@dataclass(frozen=True)
class Where:
    """Which rows fit.

    fits: over the columns of `needs`; None where every row fits. needs: the columns that are read.
    words: regular expressions that a row's bytes match, whatever their case, if the row fits.
    """

    fits: pl.Expr | None
    needs: tuple[str, ...]
    words: tuple[str, ...] = ()


def where_of(query: Query, columns: Sequence[Column]) -> Where:
    """The rows that a query asks for. Raises GristmillError for what does not fit the columns."""
    by_name = {column.name: column for column in columns}
    tests, needs, words = [], dict[str, None](), list[str]()
    for each in query.filters:
        tests.append(_test(each, _named(by_name, each.column, "filter")))
        needs[each.column] = None
        if by_name[each.column].type == "text" and each.rule in ("is", "contains"):
            words += _word(each.value)
    if query.search:
        searched = [column.name for column in columns if column.searchable]
        if not searched:
            raise GristmillError("this table has no column that a search looks at: use a filter")
        tests.append(_any(searched, query.search))
        needs |= dict.fromkeys(searched)
        words += _word(query.search)
    if query.sort:
        _named(by_name, query.sort, "sort")
        needs[query.sort] = None
    fits = None
    for test in tests:
        fits = test if fits is None else fits & test
    return Where(fits, tuple(needs), tuple(words))


def _named(columns: Mapping[str, Column], name: str, use: str) -> Column:
    found = columns.get(name)
    wanted = {"filter": "filterable", "sort": "sortable"}[use]
    if found is None or not getattr(found, wanted):
        able = ", ".join(each.name for each in columns.values() if getattr(each, wanted))
        raise GristmillError(f"{use} {name}: there is no such column to {use} by; there are {able}")
    return found


def _word(text: str) -> list[str]:
    """A regular expression for what a row's bytes have of a text, in any form of JSON or a table.

    Marks between its words may be written otherwise; a letter may be part of an escape where the
    text has line ends or backslashes, and then its longest word alone is looked for.
    """
    found = [re.escape(word) for word in _WORDS.findall(text)]
    if not found:
        return []
    if "\\" in text or not text.isprintable():
        return [max(found, key=len)]
    return [r"[\W_]+".join(found)]


def holds(text: str) -> str:
    """A regular expression for a text, whatever its case."""
    return f"(?i){re.escape(text)}"


def _any(names: Sequence[str], text: str) -> pl.Expr:
    import polars as pl

    _check_length(text)
    return pl.any_horizontal(
        pl.col(name).cast(pl.String).str.contains(holds(text)).fill_null(False) for name in names
    )


def _test(each: Filter, column: Column) -> pl.Expr:
    import polars as pl

    if each.rule not in RULES:
        raise GristmillError(f"filter {each.column}: {each.rule} is none of {', '.join(RULES)}")
    _check_length(each.value)
    held = pl.col(each.column)
    if each.rule == "contains":
        return held.cast(pl.String).str.contains(holds(each.value)).fill_null(False)
    value = _value(each, column)
    if column.type in ("text", "truth", "list"):
        held = held.cast(pl.String).fill_null("")
    if each.rule in ("is", "is not"):
        same: pl.Expr = held.is_null() if value is None else (held == value).fill_null(False)
        return same if each.rule == "is" else ~same
    if value is None:
        return pl.lit(True)
    inside: pl.Expr = held >= value if each.rule == "from" else held <= value
    return inside.fill_null(False)


def _value(each: Filter, column: Column) -> Any:
    if column.type not in ("integer", "number"):
        return each.value
    if not each.value:
        return None
    try:
        if re.fullmatch(r"[+-]?\d{1,19}", each.value, re.ASCII):
            return int(each.value)
        return float(each.value)
    except ValueError:
        rule = f"{each.value!r} is not a number, as the column {each.column} has"
        raise GristmillError(f"filter {each.column}: {rule}") from None


def _check_length(text: str) -> None:
    if len(text) > _MOST_CHARACTERS:
        raise GristmillError(f"look for at most {_MOST_CHARACTERS:,} characters, not {len(text):,}")
