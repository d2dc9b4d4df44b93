"""Texts with names of columns in braces. Source: `docs/formats/reasoning.md#corpus-files`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

Row = Mapping[str, Any]
Get = Callable[[Row], Any]
"""Takes a row, gives a JSON value; raises Unfit for a value that a rule refuses."""
MOST_FIELDS: Final = 64
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letter(index: int) -> str:
    """The letter of a choice; index: from 0. A number behind the 26th."""
    return _LETTERS[index] if index < len(_LETTERS) else str(index + 1)


def pieces(template: str) -> list[tuple[str, bool]]:
    """The pieces of a template: a text with False, or the name in braces with True.

    `{{` and `}}` are braces. Raises ValueError for a brace without its pair or without a name, and
    for more than 64 names.
    """
    found: list[tuple[str, bool]] = []
    text, place = "", 0
    while place < len(template):
        character = template[place]
        if template[place : place + 2] in ("{{", "}}"):
            text += character
            place += 2
        elif character == "{":
            end = template.find("}", place)
            name = template[place + 1 : end]
            if end < 0 or not name or "{" in name:
                raise ValueError("has a brace without a name: write {{ for a brace that is text")
            found += ((text, False), (name, True))
            text, place = "", end + 1
        elif character == "}":
            raise ValueError("has a brace } that closes nothing: write }} for one that is text")
        else:
            text += character
            place += 1
    found.append((text, False))
    if len(found) > 2 * MOST_FIELDS + 1:
        raise ValueError(f"names more than {MOST_FIELDS} columns")
    return [piece for piece in found if piece[0]]


def filled(template: str, get: Callable[[str], Callable[[Row], str]]) -> Callable[[Row], str]:
    """What fills a template from a row.

    A line whose names are all empty is left out, and the blank lines behind it. Raises ValueError
    as `pieces`.
    """
    lines = [
        [(get(text), True) if is_name else (text, False) for text, is_name in pieces(line)]
        for line in template.split("\n")
    ]
    if len(lines) == 1 and len(lines[0]) == 1 and lines[0][0][1]:
        only: Any = lines[0][0][0]
        return lambda row: str(only(row))

    def fill(row: Row) -> str:
        made: list[str] = []
        is_left_out = False
        for line in lines:
            texts = [part(row) if callable(part) else part for part, _ in line]
            named = [text for text, (_, is_name) in zip(texts, line, strict=True) if is_name]
            if named and not any(named):
                is_left_out = True
            elif line or not is_left_out:
                is_left_out = False
                made.append("".join(texts))
        return "\n".join(made).rstrip("\n") if is_left_out else "\n".join(made)

    return fill


class Pattern:
    """A text with names in braces, which divides other texts: leftmost and shortest.

    names: in braces, in order. Raises ValueError as `pieces`, and for two names without a text
    between them.
    """

    def __init__(self, pattern: str, end: str = "") -> None:
        found = pieces(pattern)
        self.names = [text for text, is_name in found if is_name]
        if any(one[1] and other[1] for one, other in itertools.pairwise(found)):
            raise ValueError("has two names without a text between them")
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError("must have names in braces, each once")
        self._pieces, self._end = found, end

    def divided(self, text: str) -> dict[str, str]:
        """The parts of a text by name, stripped; none where it has not the pattern."""
        made: dict[str, str] = {}
        begin, name = 0, None
        for piece, is_name in self._pieces:
            if is_name:
                name = piece
                continue
            place = text.find(piece, begin)
            if place < 0:
                return {}
            if name is not None:
                made[name] = text[begin:place].strip()
                name = None
            begin = place + len(piece)
        if name is not None:
            made[name] = text[begin:].strip().removesuffix(self._end)
        return made
