"""Rows of any table of an artifact in a terminal: columns, drawing or tokens, origin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.browse.opening import declared_tables, open_stored
from gristmill.browse.source import Stored, Table
from gristmill.browse.table import Filter, Query, Row, Token
from gristmill.contract import GristmillError
from gristmill.families import Misuse, Request, options_of
from gristmill.printable import command, cut, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

Declared = Sequence[tuple[str, Stored]]

_PLACES: Final = ("table", "shard", "split", "set", "corpus")
"""Options that choose tables; of the others, those of no column are for what is drawn."""
_LONGEST: Final = 2_000
"""Characters of a value, and tokens, that are shown."""
_NUMBER: Final = re.compile(r"\d{,18}", re.ASCII)
_FEW: Final = 6
"""Rows that are shown of several that fit an option, and named of those that fit a value."""
# Two shades of each span, so that a person sees where one token ends and the next begins.
_GROUNDS: Final = (
    ("grey85", "grey78"),
    ("navajo_white1", "light_goldenrod2"),
    ("pale_green1", "dark_sea_green2"),
    ("light_sky_blue1", "sky_blue2"),
    ("thistle1", "plum2"),
    ("misty_rose1", "light_pink1"),
)


def show(request: Request) -> Iterator[RenderableType]:
    """Yield what a person asks to see of an artifact.

    `Request.sample` is the number of a row from 0, an id, or `COLUMN=VALUE`, which is the first row
    that fits; "" is the first row, or those that the options name. `Request.options` has those that
    were typed; `table` is the name of a table.

    Raises Misuse for an option or a value that no table has, and GristmillError where there is no
    such row or a file is damaged.
    """
    options = {name: str(value) for name, value in request.options.items() if value is not None}
    declared = _chosen(request.path, declared_tables(request.path), options)
    terms = {name: options[name] for name in options if any(name in s.terms for _, s in declared)}
    if terms and request.sample:
        raise Misuse(f"{request.sample} and --{next(iter(terms))}: name a row by one of them")
    if terms:
        table, rows = _by_terms(request.path, declared, terms)
    elif _NUMBER.fullmatch(request.sample):
        table, rows = _by_number(request.path, declared, int(request.sample or 0))
    else:
        table, rows = _by_value(request.path, declared, request.sample)
        yield from _others(request.path, rows[1:])
        rows = rows[:1]
    for row in rows:
        yield from _row(table, row, request.options)
    if len(rows) == 1:
        yield from _origin(rows[0])


def _chosen(path: Path, declared: Declared, options: Mapping[str, str]) -> Declared:
    """The tables that the options choose."""
    left, known = declared, _known(declared)
    for name, value in options.items():
        if name not in known:
            listed = ", ".join(f"--{each}" for each in known)
            raise Misuse(f"--{name} does not apply to {path}: it takes {listed}")
        if name in _PLACES and value not in known[name]:
            listed = cut(", ".join(dict.fromkeys(known[name])), _LONGEST)
            raise Misuse(f"--{name} {value}: {path} has {listed}")
        if name in _PLACES:
            left = [(asset, each) for asset, each in left if _places(each).get(name) == value]
        else:
            of_column = any(name in each.terms for _, each in declared)
            left = [
                (asset, each)
                for asset, each in left
                if (name in each.terms if of_column else _draws(each))
            ]
    if not left:
        names = cut(", ".join(each.name for _, each in declared), _LONGEST)
        typed = " ".join(f"--{name} {value}" for name, value in options.items())
        raise Misuse(f"{typed}: no table of {path} has all of them; there are {names or 'none'}")
    return left


def _known(declared: Declared) -> dict[str, list[str]]:
    """The options of an artifact, with the values of those that choose tables."""
    known: dict[str, list[str]] = {}
    for asset, stored in declared:
        for name, value in _places(stored).items():
            known.setdefault(name, []).append(value)
        drawn = options_of(asset, "show") if _draws(stored) else ()
        known |= {name: [] for name in (*stored.terms, *drawn) if name not in (*known, *_PLACES)}
    return known


def _draws(stored: Stored) -> bool:
    return stored.drawn is not Stored.drawn


def _places(stored: Stored) -> dict[str, str]:
    return {"table": stored.name, **stored.chosen}


def _by_number(path: Path, declared: Declared, number: int) -> tuple[Table, Sequence[Row]]:
    table = open_stored(path, *declared[0])
    rows = table.rows(number, 1, inf)
    if not rows:
        count = f"{table.count:,} rows" if table.count else "no rows"
        rule = f"{_named(table)} has {count}, which count from 0: there is no row {number:,}"
        raise GristmillError(f"{path}: {rule}")
    return table, rows


def _by_terms(
    path: Path, declared: Declared, terms: Mapping[str, str]
) -> tuple[Table, Sequence[Row]]:
    """Some rows, at even distances, of the first table in which any fits."""
    for asset, stored in declared:
        table = open_stored(path, asset, stored)
        found = [Filter(stored.terms[name], "is", value) for name, value in terms.items()]
        numbers = table.numbers(Query(filters=tuple(found)))
        if numbers:
            few = min(_FEW, len(numbers)) - 1
            at = [k * (len(numbers) - 1) // max(few, 1) for k in range(few + 1)]
            return table, [row for k in at for row in table.rows(numbers[k], 1, inf)]
    typed = " ".join(f"--{name} {value}" for name, value in terms.items())
    raise GristmillError(f"{path}: no row has {typed}")


def _by_value(path: Path, declared: Declared, sample: str) -> tuple[Table, Sequence[Row]]:
    """The first rows with an id, or with a value in a column, of the first table that has any."""
    column, equals, value = sample.partition("=")
    looked: list[str] = []
    for asset, stored in declared:
        if not equals and not stored.ids:
            continue
        table = open_stored(path, asset, stored)
        wanted = [(each, sample) for each in stored.ids]
        if equals and column in {each.name for each in table.columns}:
            wanted = [(column, value)]
        for name, text in wanted:
            looked.append(name)
            if rows := _first(table, Query(filters=(Filter(name, "is", text),))):
                return table, rows
    where = f" in {', '.join(dict.fromkeys(looked))}" if looked else ""
    rule = f"no row has {sample!r}{where}: name one by its number, or by COLUMN=VALUE"
    raise GristmillError(f"{path}: {rule}")


def _first(table: Table, query: Query) -> Sequence[Row]:
    found = table.find(query, most=_FEW)
    while not found.rows and found.token:
        found = table.find(query, found.token, most=_FEW)
    return found.rows


def _others(path: Path, rows: Sequence[Row]) -> Iterator[Text]:
    from rich.text import Text

    if rows:
        numbers = ", ".join(f"{row.number}" for row in rows)
        yield Text(f"others that fit: rows {numbers}; all of them: {command('browse', str(path))}")


def _named(table: Table) -> str:
    return printable(table.name or table.kind)


def _row(table: Table, row: Row, options: Mapping[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    count = "" if table.count is None else f" of {table.count:,}"
    yield Text(f"{_named(table)}: row {row.number:,}{count}", "bold")
    if row.error:
        raise GristmillError(row.error)
    for name, value in row.cells.items():
        shown = "" if value is None else cut(str(value), _LONGEST)
        yield Text.assemble((f"{printable(name)}: ", "dim"), printable(shown))
    drawn = row.drawn(options)
    yield from drawn
    if not drawn and (tokens := row.tokens()):
        yield _tokens(tokens)


def _tokens(tokens: Sequence[Token]) -> Text:
    """Tokens in the colours of their spans, below the names of these."""
    from rich.text import Text

    names = dict.fromkeys(token.span for token in tokens if token.span)
    grounds = {name: _GROUNDS[(at + 1) % len(_GROUNDS)] for at, name in enumerate(names)}
    text = Text()
    for name, ground in grounds.items():
        text.append(f" {printable(name)} ", f"black on {ground[0]}").append(" ")
    if any(token.counts is False for token in tokens):
        text.append("italic: masked, not in the loss", "italic")
    text.append("\n" * bool(text.plain))
    for at, token in enumerate(tokens[:_LONGEST]):
        lines = "\n".join(map(printable, token.text.split("\n")))
        shades = grounds.get(token.span) or (None if token.id is None else _GROUNDS[0])
        italic = "italic " * (token.counts is False)
        text.append(lines, f"{italic}black on {shades[at % 2]}" if shades else italic.strip())
    if (more := len(tokens) - _LONGEST) > 0:
        text.append(f"\n… and {more:,} more tokens")
    return text


def _origin(row: Row) -> Iterator[Text]:
    from rich.text import Text

    try:
        facts = row.origin()
    except GristmillError as error:
        yield Text(f"origin: {printable(str(error))}", "dim")
        return
    if facts:
        yield Text("origin:", "bold")
    for each in facts:
        yield from (Text(f"{name}: {printable(str(value))}", "dim") for name, value in each.items())
