"""Rows of any table of an artifact in a terminal: columns, drawing or tokens, origin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.browse.opening import declared_tables, open_stored
from gristmill.browse.source import MOST_ROWS, Stored, Table
from gristmill.browse.table import Filter, Query, Row, Token, colours
from gristmill.contract import GristmillError
from gristmill.families import Misuse, Request, options_of
from gristmill.printable import command, cut, plain, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

Declared = Sequence[tuple[str, Stored]]

_PLACES: Final = ("shard", "split", "set", "corpus")
"""Options that choose tables: they are not for what is drawn."""
_LONGEST: Final = 2_000
"""Characters of a value, and tokens, that are shown."""
_NUMBER: Final = re.compile(r"\d{,18}", re.ASCII)
_FEW, _MOST = 6, 1_000_000
"""Rows that are shown, at even distances, of those that fit an option; rows that are looked for."""
# Two shades of each span, so that a person sees where one token ends and the next begins.
_GROUNDS: Final = (
    ("grey85", "grey78"),
    ("navajo_white1", "light_goldenrod2"),
    ("pale_green1", "dark_sea_green2"),
    ("misty_rose1", "light_pink1"),
    ("thistle1", "plum2"),
    ("light_sky_blue1", "sky_blue2"),
)


def show(request: Request) -> Iterator[RenderableType]:
    """Yield what a person asks to see of an artifact.

    `Request.sample` is the number of a row from 0, an id, or `COLUMN=VALUE`, which is the first row
    that fits; "" is the first row, or those that the options name, and all members of a JSON file.
    The name of a table or of its partition stands for that table and "".
    `Request.options` has those that were typed; `table` is the name of a table.

    Raises Misuse for an option or a value that no table has, and GristmillError where there is no
    such row or a file is damaged.
    """
    from rich.text import Text

    path, sample = request.path, request.sample
    options = {name: str(value) for name, value in request.options.items() if value is not None}
    declared = _chosen(path, declared_tables(path), options)
    terms = {name: options[name] for name in options if any(name in s.terms for _, s in declared)}
    if terms and sample:
        raise Misuse(f"{sample} and --{next(iter(terms))}: name a row by one of them")
    if not _NUMBER.fullmatch(sample):
        named = [each for each in declared if sample in (each[1].name, each[1].partition)]
        declared, sample = (named, "") if named else (declared, sample)
    if not sample and declared[0][1].name.endswith(".json"):
        table = open_stored(path, *declared[0])
        yield Text(_named(table), "bold")
        for row in table.rows(0, MOST_ROWS):
            value = cut(printable(str(row.cells["value"])), _LONGEST)
            yield Text.assemble((f"{printable(str(row.cells['key']))}: ", "dim"), value)
        if (more := (table.count or 0) - MOST_ROWS) > 0:
            yield Text(f"… and {more:,} more members")
        return
    numbers: Sequence[int]
    if _NUMBER.fullmatch(sample) and not terms:
        table, numbers = open_stored(path, *declared[0]), [int(sample or 0)]
    else:
        table, numbers = _found(path, declared, sample, terms)
    last = 0 if sample else min(_FEW, len(numbers)) - 1
    for at in range(last + 1):
        yield from _row(table, numbers[at * (len(numbers) - 1) // max(last, 1)], request.options)
    if sample and (others := ", ".join(map(str, numbers[1:_FEW]))):
        yield Text(f"others that fit: rows {others}; all of them: {command('browse', str(path))}")


def _chosen(path: Path, declared: Declared, options: Mapping[str, str]) -> Declared:
    for name, value in options.items():
        left = [each for each in declared if _options(*each).get(name) in ("", value)]
        known = [_options(*each) for each in declared]
        if not left and (values := dict.fromkeys(each[name] for each in known if name in each)):
            raise Misuse(f"--{name} {value}: {path} has {cut(', '.join(values), _LONGEST)}")
        if not left:
            names = ", ".join(dict.fromkeys(f"--{option}" for each in known for option in each))
            raise Misuse(f"--{name} does not apply to {path}: it takes {names or 'none'}")
        declared = left
    if not declared:
        raise Misuse(f"{path} has no tables")
    return declared


def _options(asset: str, stored: Stored) -> dict[str, str]:
    """The options of a table, with the values of those that choose it, "" for those of rows."""
    drawn = options_of(asset, "show") if stored.drawn is not Stored.drawn else ()
    of_rows = {name: "" for name in (*stored.terms, *drawn) if name not in _PLACES}
    return {"table": stored.name, **stored.chosen, **of_rows}


def _found(
    path: Path, declared: Declared, sample: str, terms: Mapping[str, str]
) -> tuple[Table, Sequence[int]]:
    """The first table in which rows fit terms, an id or `COLUMN=VALUE`, and their numbers."""
    column, equals, value = sample.partition("=")
    looked: list[str] = []
    for asset, stored in declared:
        ids = stored.ids if stored.named is None else stored.named(sample)
        if isinstance(ids, int):
            return open_stored(path, asset, stored), [ids]
        has_any = terms.keys() <= stored.terms.keys() if terms else equals or ids
        if not has_any:
            continue
        table = open_stored(path, asset, stored)
        if terms:
            wanted = [{stored.terms[name]: terms[name] for name in terms}]
        elif equals and column in {each.name for each in table.columns}:
            wanted = [{column: value}]
        else:
            wanted = [{each: sample} for each in ids]
        for cells in wanted:
            looked += cells
            filters = tuple(Filter(name, "is", text) for name, text in cells.items())
            if numbers := table.numbers(Query(filters=filters), _FEW if sample else _MOST):
                return table, numbers
    typed = sample or " ".join(f"--{name} {value}" for name, value in terms.items())
    where = f" in {', '.join(dict.fromkeys(looked))}" if looked else ""
    rule = f"no row has {typed!r}{where}: name one by its number, or by COLUMN=VALUE"
    raise GristmillError(f"{path}: {rule}")


def _named(table: Table) -> str:
    return printable(table.name or table.kind)


def _row(table: Table, number: int, options: Mapping[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    rows, count = table.rows(number, 1, inf), table.count
    if not rows:
        rule = f"has {count or 'no'} rows, which count from 0: there is no row {number:,}"
        raise GristmillError(f"{table.place}: {_named(table)} {rule}")
    (row,) = rows
    of = "" if count is None else f" of {count:,}"
    yield Text(f"{_named(table)}: row {number:,}{of}", "bold")
    if row.error:
        raise GristmillError(row.error)
    for name, value in row.cells.items():
        shown = "" if value is None else plain(str(value), _LONGEST).replace("\n", "\n  ")
        yield Text.assemble((f"{printable(name)}: ", "dim"), shown)
    drawn = row.drawn(options)
    yield from drawn
    if not drawn and (tokens := row.tokens()):
        yield coloured(tokens)
    yield from _origin(row)


def coloured(tokens: Sequence[Token]) -> Text:
    """Tokens in the colours of their spans, below the names of these."""
    from rich.text import Text

    grounds = {name: _GROUNDS[at] for name, at in colours(token.span for token in tokens).items()}
    text = Text()
    for name, ground in grounds.items():
        text.append(f" {printable(name)} ", f"black on {ground[0]}").append(" ")
    if any(token.counts is False for token in tokens):
        text.append("italic: masked, not in the loss", "italic")
    text.append("\n" * bool(text.plain))
    for at, token in enumerate(tokens[:_LONGEST]):
        shades = grounds.get(token.span) or (None if token.id is None else _GROUNDS[0])
        italic = "italic " * (token.counts is False)
        text.append(
            plain(token.text), f"{italic}black on {shades[at % 2]}" if shades else italic.strip()
        )
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
