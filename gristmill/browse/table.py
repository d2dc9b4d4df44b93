"""What a table of an artifact has: columns, rows, and what a person looks for, as an expression."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from gristmill.contract import GristmillError

if TYPE_CHECKING:
    import polars as pl

Cell = str | int | float | bool | None
"""What one column has in one row. Lists and objects are their JSON text; bytes are hexadecimal."""
Type = Literal["text", "integer", "number", "truth", "list"]
Rule = Literal["is", "is not", "from", "to", "contains"]
RULES: Final[tuple[Rule, ...]] = ("is", "is not", "from", "to", "contains")
SECONDS: Final = 2.0
"""How long one answer looks for rows, by default."""


class StillCounting(GristmillError):
    """A row is asked for by its number, and the lines before it are not counted yet.

    Ask again: each time continues where the last one stopped.
    """

    def __init__(self, file: Path, done: float) -> None:
        super().__init__(f"{file}: {done:.0%} of its lines are counted; ask again")
        self.done = done


@dataclass(frozen=True)
class Column:
    """A column of a table.

    name: as in the file. type: of its cells. text: half a sentence on what it holds, or nothing.
    searchable: whether `Query.search` looks at it. filterable: whether a filter may name it.
    sortable: whether a query may sort by it; where the table is too large, the query says so.
    """

    name: str
    type: Type
    text: str = ""
    searchable: bool = False
    filterable: bool = True
    sortable: bool = True


@dataclass(frozen=True)
class Filter:
    """What a column must have.

    rule: `is` and `is not` compare with the text of the cell; `contains` looks for a part of it,
    whatever its case; `from` and `to` are the ends of a range, both included: of numbers in columns
    of numbers, else of texts in the order of their code points.
    """

    column: str
    rule: Rule
    value: str


@dataclass(frozen=True)
class Query:
    """What a person looks for.

    search: text that a searchable column contains, whatever its case; "" for any row.
    filters: all of them hold. sort: name of a column; "" for the stored order.
    descending: whether the largest come first; rows with equal cells keep the stored order.
    """

    search: str = ""
    filters: tuple[Filter, ...] = ()
    sort: str = ""
    descending: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture of a row, as on the page of the asset: an SVG document.

    wide: whether it stands above the columns, and not beside them; default False.
    """

    title: str
    svg: str
    wide: bool = False


@dataclass(frozen=True)
class Token:
    """A token, or a piece of text, of a row.

    text: visible characters; may end in a newline. id: in the vocabulary, None for plain text.
    counts: whether the loss counts it, None where the artifact has no mask.
    span: what it belongs to, as `reasoning` or `Step 2`; "" where the artifact has no spans.
    plain: the text as it is, where `text` has marks for spaces and line ends; default: `text`.
    """

    text: str
    id: int | None = None
    counts: bool | None = None
    span: str = ""
    plain: str | None = None


_MEANINGS: Final = {"prompt": 0, "reasoning": 1, "final": 2}
SPANS: Final = 6
"""Colours of spans."""


def colours(spans: Iterable[str]) -> dict[str, int]:
    """The number of the colour of each span, the same in pictures, on pages and in terminals.

    Those of conversations have their own; others take theirs in the order in which they begin.
    """
    names = [name for name in dict.fromkeys(spans) if name]
    others = [name for name in names if name not in _MEANINGS]
    numbers = {name: 1 + at % (SPANS - 1) for at, name in enumerate(others)} | _MEANINGS
    return {name: numbers[name] for name in names}


@dataclass(frozen=True)
class Raw:
    """Where the bytes of a row are in the artifact.

    file: path. place: `bytes 0-99`, `row 7 of 1,000`. text: the stored line, or the values.
    """

    file: Path
    place: str
    text: str


@dataclass(frozen=True)
class Row:
    """One row of a table.

    number: from 0, in the stored order; the link to the row.
    cells: by name of the column. error: what is wrong with the row, naming file, row and rule;
        its cells are then those that could be read.
    raw: its bytes. pictures, drawn, tokens, origin: read when they are called; they raise
        GristmillError where a file is damaged. A row without pictures or tokens has none.
    drawn: takes the options of `gristmill show`, and returns what a terminal draws of the row.
    origin: where the row came from, as `gristmill trace` says: facts by name, several mappings
        where an id occurs more than once; empty where nothing is known.
    """

    number: int
    cells: Mapping[str, Cell]
    raw: Raw
    error: str = ""
    pictures: Callable[[], Sequence[Picture]] = tuple
    tokens: Callable[[], Sequence[Token]] = tuple
    origin: Callable[[], Sequence[Mapping[str, object]]] = tuple
    drawn: Callable[[Mapping[str, Any]], Sequence[Any]] = lambda _: ()


@dataclass(frozen=True)
class Found:
    """A page of the rows that a query found.

    rows: at most as many as were asked for. looked: rows of the table that were looked at so far.
    token: continues after these; "" where nothing is left. `rows` may be fewer, or none, though
    there is a token: the time was over.
    """

    rows: Sequence[Row]
    looked: int
    token: str = field(default="")


_WORDS: Final = re.compile(r"[^\W_]+")
_MOST_CHARACTERS: Final = 1_000
_MOST_WORDS: Final = 8
_INTEGERS: Final = range(-(1 << 63), 1 << 63)
"""Of a text that is looked for."""


@dataclass(frozen=True)
class Where:
    """Which rows fit.

    fits: over the columns of `needs`; None where every row fits. needs: the columns that are read.
    words: regular expressions that a row's bytes match, whatever their case, if the row fits.
    lengths: columns of lists of which the lengths are wanted, for statistics; None for a search.
    """

    fits: pl.Expr | None
    needs: tuple[str, ...]
    words: tuple[str, ...] = ()
    lengths: Collection[str] | None = None


def where_of(
    query: Query,
    columns: Sequence[Column],
    also: Callable[[str], Mapping[str, Sequence[str]]] = lambda _: {},
) -> Where:
    """The rows that a query asks for. Raises GristmillError for what does not fit the columns.

    also: takes the text of a search, and returns values of columns whose rows fit it, too.
    """
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
        import polars as pl

        _check_length(query.search)
        texts = (pl.col(name).cast(pl.String) for name in searched)
        held = [each.str.contains(holds(query.search)) for each in texts]
        known = {
            name: each for name, each in also(query.search).items() if each and name in by_name
        }
        held += [pl.col(name).is_in(list(values)) for name, values in known.items()]
        tests.append(pl.any_horizontal(each.fill_null(False) for each in held))
        needs |= dict.fromkeys([*searched, *known])
        if own := _word(query.search):
            words.append("|".join([*own, *(re.escape(v) for each in known.values() for v in each)]))
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
    """A regular expression for what bytes of a row hold of a text, in JSON or a table."""
    # A row with all words has the first ones; of hundreds the expression would be too large.
    found = [re.escape(word) for word in _WORDS.findall(text)[:_MOST_WORDS]]
    if not found:
        return []
    if "\\" in text or not text.isprintable():
        return [max(found, key=len)]
    return [r"[\W_]+".join(found)]


def holds(text: str) -> str:
    """A regular expression for a text, whatever its case, and as a string of JSON has it."""
    as_json = json.dumps(text, ensure_ascii=False)[1:-1]
    return f"(?i){re.escape(text)}" + f"|{re.escape(as_json)}" * (as_json != text)


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
        if re.fullmatch(r"[+-]?\d{1,19}", each.value, re.ASCII) and int(each.value) in _INTEGERS:
            return int(each.value)
        return float(each.value)
    except ValueError:
        rule = f"{each.value!r} is not a number, as the column {each.column} has"
        raise GristmillError(f"filter {each.column}: {rule}") from None


def _check_length(text: str) -> None:
    if len(text) > _MOST_CHARACTERS:
        raise GristmillError(f"look for at most {_MOST_CHARACTERS:,} characters, not {len(text):,}")
