"""The columns of rows: types, shares of empty values, lengths, examples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gristmill.corpora.raw.chat.lists import is_nodes
from gristmill.corpora.raw.chat.marks import message_keys, talk_of

TEXT, NUMBER, TRUTH, OBJECT = "text", "number", "truth value", "object"
TEXTS, OBJECTS, TRUTHS, LIST = "list of texts", "list of objects", "list of truth values", "list"
MESSAGES, BYTES, EMPTY = "messages", "bytes", "empty"

CHOSEN: Final = ("chosen", "preferred")
"""Columns of the better one of two answers."""
_OF_ITEMS: Final = ((str, TEXTS), (bool, TRUTHS), (dict, OBJECTS))
_MOST_COLUMNS: Final = 500
_MOST_VALUES: Final = 20
_EXAMPLE: Final = 60
_DEPTH: Final = 2


@dataclass
class Column:
    """One column, or one place `a.b` in a column of objects.

    filled: rows in which it says something. kinds: how often each type was there. chars: of its
    texts together, of a list those of its items. values: how often each of 20 short values was
    there. is_written: rows whose text is a list or an object in Python's or JSON's notation.
    """

    name: str
    filled: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    chars: int = 0
    values: Counter[str] = field(default_factory=Counter)
    example: str = ""
    is_written: int = 0

    @property
    def kind(self) -> str:
        """The type that most of its values have."""
        return self.kinds.most_common(1)[0][0] if self.kinds else EMPTY

    @property
    def mean(self) -> float:
        """Characters of a value that is not empty."""
        return self.chars / max(self.filled, 1)

    def add(self, value: Any) -> None:
        """Count a value."""
        if (kind := kind_of(value)) == EMPTY:
            return
        self.filled += 1
        self.kinds[kind] += 1
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self.chars += sum(map(len, value)) if kind == TEXTS else len(said)
        self.example = self.example or said[:_EXAMPLE]
        if kind == TEXT and said[:2] in ("[{", "{'", "['", '["', '{"'):
            self.is_written += 1
        if len(said) <= _EXAMPLE and (said in self.values or len(self.values) < _MOST_VALUES):
            self.values[said] += 1


@dataclass
class Columns:
    """The columns of some rows, places in objects included, in the order of the rows."""

    rows: int = 0
    by_name: dict[str, Column] = field(default_factory=dict)

    def first(self, names: Iterable[str]) -> str | None:
        """The first of some names that is a column, None where none is."""
        return next((name for name in names if name in self.by_name), None)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.rows += 1
        for name, value in _places(row):
            if name not in self.by_name and len(self.by_name) < _MOST_COLUMNS:
                self.by_name[name] = Column(name)
            if name in self.by_name:
                self.by_name[name].add(value)


def _places(row: Mapping[str, Any], begin: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        yield begin + name, value
        if isinstance(value, dict) and depth + 1 < _DEPTH and not is_nodes(value):
            yield from _places(value, f"{begin}{name}.", depth + 1)


def kind_of(value: Any) -> str:
    """The type of a value, in the words of a table."""
    if value is None or value in ("", [], {}):
        return EMPTY
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int | float):
        return NUMBER
    kind = TEXT if isinstance(value, str) else OBJECT if isinstance(value, dict) else LIST
    if isinstance(value, list):
        fitting = (of for item, of in _OF_ITEMS if all(isinstance(each, item) for each in value))
        kind = next(fitting, LIST)
    return kind if kind in (LIST, TRUTHS) or message_keys(talk_of(value)) is None else MESSAGES


def counted(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """The columns of some rows."""
    made = Columns()
    for row in rows:
        made.add(row)
    return made
