"""Markdown for previews: tables, images, and untrusted text that stays text."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from gristmill import svg as drawn
from gristmill.printable import cut

# Of a text of megabytes no more than its beginning is looked at.
_LOOKED_AT: Final = 100_000
# Room for the line that says what was left out.
_NOTE: Final = 100
_RULES: Final = {"l": "---", "r": "---:"}
_CHARACTERS: Final = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&#8203;": ""}
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])|" + "|".join(_CHARACTERS))
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# A zero-width space after these keeps GitHub's rules from making a link of bare text.
_LINK_STARTS: Final = r"@|:(?=//)|www(?=\.)"
# What begins a heading, a list, a rule or the line under a heading, at the start of a line.
_LINE_STARTS: Final = (
    r"^(?:[-+](?= |$)|[-=](?=[-=]*$)|#(?=#{0,5}(?: |$))|(?P<digits>[0-9]{1,9})[.)](?= |$))"
)
_SPECIAL: Final = re.compile(
    rf"[\\`*~|!\[\]&<>$^{{}}]|_+|{_LINK_STARTS}|{_LINE_STARTS}", re.IGNORECASE
)
# Underscores in a word, as of names of files, are no emphasis; some pages show texts as they are.
_IN_A_WORD: Final = re.compile(r"[A-Za-z0-9]_+[A-Za-z0-9]", re.ASCII)
# What ends an address in Markdown, or means something in it or in a URL.
_IN_ADDRESS: Final = str.maketrans(
    {
        "<": "\\<",
        ">": "\\>",
        "&": "%26",
        "#": "%23",
        "\\": "%5C",
        "|": "%7C",
        "\n": "%0A",
        "\r": "%0D",
    }
)
_UNSAFE_IN_CODE: Final = re.compile(r"[`|\\]")
LONGEST: Final = 1000
"""Most characters of one text from a drop in Markdown, where nothing else is said."""
MOST_ITEMS: Final = 50
"""Most items of a list."""
INLINE: Final = 999
"""Most characters of a document that Dagster shows where it stands; a longer one is a link."""


class Markdown(str):
    """Text that is Markdown already, on one line: `table` does not escape it."""

    __slots__ = ()


def escape(text: str, limit: int = LONGEST) -> Markdown:
    """Untrusted text as Markdown that shows it literally, on one line.

    text: any string. White space and control characters become single spaces;
        surrogates and characters without a shape (bidirectional controls,
        zero-width characters) become U+FFFD.
    limit: characters that are kept, before escaping; a longer text ends with `…` and
        how many more there are. Default LONGEST.
    """
    return Markdown(_SPECIAL.sub(_escaped, _shortened(text, limit)))


def unescaped(text: str) -> str:
    """Returns the text that `escape` was given, for a place that shows no Markdown."""
    return _ESCAPED.sub(lambda found: found[1] or _CHARACTERS[found[0]], text)


def code(text: str, limit: int = LONGEST) -> Markdown:
    """Untrusted text as a code span; escaped text where a code span cannot hold it.

    Backquotes end a code span, and a backslash before `|` cannot be written in a
    table's code span. Arguments as for `escape`.
    """
    line = _shortened(text, limit)
    if not line or _UNSAFE_IN_CODE.search(line):
        return Markdown(_SPECIAL.sub(_escaped, line))
    return Markdown(f"`{line}`")


def bold(text: str) -> Markdown:
    """Untrusted text in bold."""
    return Markdown(f"**{escape(text)}**")


def image(title: str, svg: str) -> Markdown:
    """An SVG drawing as an image that needs no file.

    It is written as it is, which takes fewer characters than base64.
    """
    address = drawn.shortened(svg).replace("%", "%25").translate(_IN_ADDRESS)
    return Markdown(f"![{escape(title, 60)}](<data:image/svg+xml,{address}>)")


def images(pictures: Iterable[Markdown]) -> str:
    """Images beside each other, as many as the page has room for, then below each other."""
    return "\n".join(pictures)


def inline_image(title: str, *drawings: str) -> Markdown:
    """A small SVG drawing that the UI shows on the overview of an asset."""
    found = [image(title, drawing) for drawing in drawings]
    return next((each for each in found if len(each) <= INLINE), found[-1])


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
    """A list with one line an item; items that are not `Markdown` are escaped.

    Items after the first MOST_ITEMS are counted.
    """
    lines = [f"* {_cell(item)}" for item in items]
    if (more := len(lines) - MOST_ITEMS) > 0:
        lines[MOST_ITEMS:] = [f"* … and {more:,} more"]
    return "\n".join(lines)


def shortened(document: str, most: int) -> str:
    """A Markdown document, or its first lines and how many were left out.

    `most` counts as `stored_size` does, and is 1,000 or more.
    """
    if stored_size(document) <= most:
        return document
    lines = document.splitlines()
    kept: list[str] = []
    size = _NOTE
    for line in lines:
        # A picture is one line: it is shown whole or left out.
        size += stored_size(line) + len("\\n")
        if size > most:
            break
        kept.append(line)
    if sum(line.lstrip().startswith("```") for line in kept) % 2:
        kept.append("```")
    left_out = document[sum(len(line) + 1 for line in lines[: len(kept)]) :]
    note = f"… and {len(lines) - len(kept):,} more lines of {len(left_out):,} characters"
    return "\n".join([*kept, "", note]) + "\n"


def stored_size(text: str) -> int:
    """Bytes that a text takes in an event, whose JSON escapes all that is not ASCII."""
    return len(json.dumps(text)) - 2


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> Markdown:
    return text if isinstance(text, Markdown) else escape(text)


def _escaped(match: re.Match[str]) -> str:
    found = match.group()
    if match["digits"]:
        return f"{found[:-1]}\\{found[-1]}"
    if found[0] == "_":
        is_in_word = _IN_A_WORD.fullmatch(match.string[max(0, match.start() - 1) : match.end() + 1])
        return found if is_in_word else "\\_" * len(found)
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


def _shortened(text: str, limit: int) -> str:
    if len(text) <= _LOOKED_AT:
        return cut(_one_line(text), limit)
    kept = _one_line(text[:_LOOKED_AT])[:limit]
    return f"{kept}… and {len(text) - len(kept):,} more characters"
