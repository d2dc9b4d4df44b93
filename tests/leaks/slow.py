"""The words of a text, one character after the other: what the kernels do, for tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from gristmill.leaks.words import ALONE, CAPITAL, DIGIT, END, KINDS, SKIPPED, fold

_WITHIN: Final = re.compile(",[0-9]{3}(?![0-9])")


class Word(NamedTuple):
    """A word of a text: its folded characters, its place, whether it is an ideograph, and bare."""

    folded: str
    begin: int
    end: int
    alone: bool
    bare: bool


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text."""
    held, begin, end, kind, capitals = "", 0, 0, END, [False]
    text = f"{text} "  # which ends the last word
    for at, char in enumerate(text):
        code, its = divmod(fold(char), KINDS)
        is_capital, its = divmod(its, CAPITAL)
        if its == SKIPPED or (its == END and kind == DIGIT and _WITHIN.match(text, at)):
            continue
        if held and (its != kind or its == ALONE):
            is_bare = kind != DIGIT and (capitals[-1] or not capitals[0])
            yield Word(held, begin, end, kind == ALONE, is_bare)
            held = ""
        if its != END:
            begin, capitals = (begin, capitals) if held else (at, [])
            held += chr(code)
            capitals.append(bool(is_capital))
        end, kind = at + 1, its
