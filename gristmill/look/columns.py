"""The columns of rows: types, shares of empty values, lengths, examples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.corpora.raw.chat import lists
from gristmill.corpora.raw.chat.lists import is_nodes
from gristmill.corpora.raw.chat.marks import SPEAKERS
from gristmill.corpora.raw.chat.messages import GUESSED
from gristmill.corpora.raw.texts import Unfit

TEXT, NUMBER, TRUTH, OBJECT = "text", "number", "truth value", "object"
TEXTS, OBJECTS, TRUTHS, LIST = "list of texts", "list of objects", "list of truth values", "list"
MESSAGES, BYTES, EMPTY = "messages", "bytes", "empty"

ROLE_KEYS: Final = ("role", "from", "speaker", "author", "sender")
TEXT_KEYS: Final = ("content", "value", "text", "message", "parts")
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

    filled: rows in which it is not null, an empty text, list or object.
    kinds: how often each type was there.
    chars: of its texts together, of a list those of its items.
    values: how often each short value was there, at most 20 of them.
    example: one value, cut.
    is_written: rows whose text is a list or an object in Python's or JSON's notation.
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
    """The columns of some rows.

    rows: that were counted. by_name: places in objects included, in the order of the rows.
    """

    rows: int = 0
    by_name: dict[str, Column] = field(default_factory=dict)

    def first(self, names: Iterable[str]) -> str | None:
        """The first of some names that is a column, None where none is."""
        return next((name for name in names if name in self.by_name), None)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.rows += 1
        for name, value in _places(row):
            if name not in self.by_name:
                if len(self.by_name) >= _MOST_COLUMNS:
                    continue
                self.by_name[name] = Column(name)
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
    is_plain = kind in (LIST, TRUTHS) or message_keys(talk_of(value)) is None
    return kind if is_plain else MESSAGES


def talk_of(value: Any) -> Any:
    """The list of messages that a text in JSON, a list or an object holds, as a recipe reads it.

    Thoughts are messages in it; calls of tools without a role are left out. Of an object of nodes
    the messages of all. Returns any other value as it is.
    """
    is_text = isinstance(value, str) and value.lstrip()[:1] in ("[", "{")
    if not is_text and not isinstance(value, dict | list):
        return value
    try:
        is_tree = is_nodes(value)
        found = lists.messages_of(value.values(), "") if is_tree else lists.message_list(value)
        if not isinstance(found, list):
            return found
        kept = [each for each in found if not lists.call_of(each) or each.get("role")]
        return lists.with_thoughts(kept)
    except (GristmillError, Unfit, TypeError):
        return value


def message_keys(value: object) -> tuple[str, str] | None:
    """The keys of the speaker and of the text in a list of messages; None: it is no such list.

    One of the speakers is known, or the keys are usual; what the others are, a recipe says.
    """
    if not isinstance(value, list) or not value:
        return None
    for role, text in ((role, text) for role in ROLE_KEYS for text in TEXT_KEYS):
        if all(
            isinstance(each, dict) and text in each and isinstance(each.get(role), str)
            for each in value
        ) and ((role, text) in GUESSED or any(each[role].lower() in SPEAKERS for each in value)):
            return role, text
    return None


def turns_of(value: Any) -> list[tuple[str | None, Any]]:
    """What each message of a value is, as a role of a recipe, and its text; none of no messages.

    The role is None for a speaker that nobody knows.
    """
    talk = talk_of(value)
    keys = message_keys(talk)
    return [(SPEAKERS.get(each[keys[0]].lower()), each[keys[1]]) for each in talk] if keys else []


def joined(parts: Iterable[Columns]) -> Columns:
    """The columns of the rows of several files together."""
    made = Columns()
    for part in parts:
        made.rows += part.rows
        for name, column in part.by_name.items():
            known = made.by_name.setdefault(name, Column(name))
            known.filled += column.filled
            known.chars += column.chars
            known.is_written += column.is_written
            known.kinds += column.kinds
            known.example = known.example or column.example
            for value, count in column.values.items():
                if value in known.values or len(known.values) < _MOST_VALUES:
                    known.values[value] += count
    return made
