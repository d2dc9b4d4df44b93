"""Markdown for previews: tables, images, and untrusted text that stays text.

Dagster's UI renders GitHub-flavoured Markdown, strips raw HTML and shows images
from data addresses. Text from drops may hold anything: in a table cell it must
not end the cell, and nowhere may it become HTML, a link, an image or a change of
the writing direction. Drawings belong to `svg` and to each family's `show`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from gristmill.svg import data_uri

_RULES: Final = {"l": "---", "r": "---:"}
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# A zero-width space after these keeps GitHub's rules from making a link of bare text.
_LINK_STARTS: Final = r"@|:(?=//)|www(?=\.)"
_SPECIAL: Final = re.compile(rf"[\\`*_~|!\[\]&<>]|{_LINK_STARTS}", re.IGNORECASE)
_UNSAFE_IN_CODE: Final = re.compile(r"[`|\\]")


class Markdown(str):
    """Text that is Markdown already, on one line: `table` does not escape it."""

    __slots__ = ()


def escape(text: str, limit: int | None = None) -> Markdown:
    """Untrusted text as Markdown that shows it literally, on one line.

    text: any string. White space and control characters become single spaces;
        surrogates and characters without a shape (bidirectional controls,
        zero-width characters) become U+FFFD.
    limit: longest text in characters, before escaping; the rest becomes `…`.
        Default None: no limit.
    """
    return Markdown(_SPECIAL.sub(_escaped, _cut(_one_line(text), limit)))


def code(text: str, limit: int | None = None) -> Markdown:
    """Untrusted text as a code span; escaped text where a code span cannot hold it.

    Backquotes end a code span, and a backslash before `|` cannot be written in a
    table's code span. Arguments as for `escape`.
    """
    line = _cut(_one_line(text), limit)
    if not line or _UNSAFE_IN_CODE.search(line):
        return escape(line)
    return Markdown(f"`{line}`")


def bold(text: str) -> Markdown:
    """Untrusted text in bold."""
    return Markdown(f"**{escape(text)}**")


def image(title: str, svg: str) -> Markdown:
    """An SVG drawing as an image that needs no file."""
    return Markdown(f"![{escape(title)}]({data_uri(svg)})")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """A table, without a final newline.

    headers: one a column; escaped.
    rows: one cell a column, or fewer: the missing cells are empty. Cells of type
        `Markdown` are used as they are, all others are escaped.
    align: one letter a column, `l` for left and `r` for right.

    Raises ValueError where a row has more cells than there are headers, or
    `align` has another length.
    """
    if len(align) != len(headers):
        raise ValueError(f"a table of {len(headers)} columns has {len(align)} letters of align")
    lines = [_line(headers), "|" + "|".join(_RULES[letter] for letter in align) + "|"]
    for row in rows:
        if len(row) > len(headers):
            raise ValueError(f"a row of {len(row)} cells in a table of {len(headers)} columns")
        lines.append(_line([*row, *[""] * (len(headers) - len(row))]))
    return "\n".join(lines)


def bullets(items: Iterable[str]) -> str:
    """A list with one line an item; items that are not `Markdown` are escaped."""
    return "\n".join(f"* {_cell(item)}" for item in items)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> Markdown:
    return text if isinstance(text, Markdown) else escape(text)


def _escaped(match: re.Match[str]) -> str:
    found = match.group()
    if found in _ENTITIES:
        return _ENTITIES[found]
    if found[0] in "@:wW":
        return f"{found}&#8203;"
    return f"\\{found}"


def _one_line(text: str) -> str:
    return " ".join("".join(map(_visible, text)).split())


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    category = unicodedata.category(character)
    return "\N{REPLACEMENT CHARACTER}" if category in ("Cf", "Cs") else " "


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"
