"""Roles of columns that values show over all rows that were looked at, whatever names say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gristmill.corpora.raw.texts import flattened
from gristmill.look.columns import NUMBER, OBJECTS, TEXT, TEXTS, Column, Columns, value_at
from gristmill.look.roles import INSTRUCT, LONG, QA, Guess

_MOST: Final = 0.8
_HALF: Final = 0.5
_TAIL: Final = 80
_LETTER: Final = re.compile(r"\(?([A-Za-z])[).:]?")
_NUMBER: Final = re.compile("[0-9]{1,3}")
Rows = Sequence[Mapping[str, Any]]


def proved(said: Guess, columns: Columns, rows: Rows) -> Guess:
    """A guess by names, with the roles that values prove, and without those that they rule out.

    A list of which another column always has a place is one of choices. What most texts of a
    column end with is the answer, and they are its thought. A context that questions hold is none.
    """
    if said.form not in (QA, INSTRUCT) or not said.question or not said.answer:
        return said
    known = columns.by_name
    if (found := _chosen(said, known, rows)) is not None:
        choices, answer = found
        said = replace(said, choices=choices, answer=answer, letters=())
    if said.cot is None and not said.choices and not said.letters and not said.firsts:
        said = _with_thought(said, known, rows)
    if said.context and _share(rows, said.context, said.question, str.__contains__) >= _HALF:
        said = replace(said, context=None)
    return said


def place_of(value: Any, count: int) -> int | None:
    """The place of one of some choices by its number or letter, from 0; None for another value.

    count: of the choices. A number may be `count` where the first one is 1.
    """
    said = str(value).strip() if isinstance(value, str | int) and value is not True else ""
    if _NUMBER.fullmatch(said):
        return int(said) if int(said) <= count else None
    mark = _LETTER.fullmatch(said)
    place = ord(mark[1].upper()) - ord("A") if mark else count
    return place if place < count else None


def _chosen(said: Guess, known: Mapping[str, Column], rows: Rows) -> tuple[str, str] | None:
    """A list of answers, and the column that says the place of the right one in each row."""
    answer = said.answer or ""
    if known[answer].kind not in (TEXTS, OBJECTS):
        return None
    for name, column in known.items():
        if column.kind not in (NUMBER, TEXT) or name in said.columns or column.mean > len("(A)."):
            continue
        pairs = [(value_at(row, name), value_at(row, answer)) for row in rows]
        places = [
            place_of(value, len(items)) if isinstance(items, list) else None
            for value, items in pairs
            if value not in (None, "")
        ]
        sizes = {len(items) for _, items in pairs if isinstance(items, list)}
        if len({*places}) > 1 and None not in places and min(sizes, default=0) > 1:
            return answer, name
    return None


def _with_thought(said: Guess, known: Mapping[str, Column], rows: Rows) -> Guess:
    """The guess with the column whose texts end with the short one as the thought of it."""
    assert said.answer is not None
    answer = known[said.answer]
    pairs = [
        (said.answer, name) if column.mean < answer.mean else (name, said.answer)
        for name, column in known.items()
        if column.kind in (TEXT, NUMBER) and name not in said.columns and "." not in name
    ]
    pairs = [
        (long, short)
        for long, short in pairs
        if known[long].kind == TEXT
        and known[long].mean >= max(LONG, 1.5 * known[short].mean)
        and len(known[short].values) != 1
    ]
    shares = {pair: _share(rows, pair[1], pair[0], _ends) for pair in pairs}
    best = max(shares, key=lambda pair: shares[pair], default=None)
    if best is None or shares[best] < _MOST:
        return said
    return replace(said, cot=best[0], answer=best[1])


def _ends(text: str, end: str) -> bool:
    """Whether a text has another one as a word near its end."""
    tail = text.rstrip()[-max(_TAIL, 2 * len(end)) :]
    return re.search(rf"(?<!\w){re.escape(end)}(?!\w)", tail) is not None


def _share(rows: Rows, inner: str, outer: str, holds: Callable[[str, str], bool]) -> float:
    """The share of rows in which the text of one column holds that of another."""
    pairs = [(flattened(value_at(row, outer)), flattened(value_at(row, inner))) for row in rows]
    both = [(whole, part.strip()) for whole, part in pairs if whole and part and part.strip()]
    return sum(holds(whole, part) for whole, part in both) / max(len(both), 1)
