"""Markdown for pages of Dagster: lists, images, and untrusted text that stays text."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from gristmill.printable import cut

# Of a text of megabytes no more than its beginning is looked at.
_LOOKED_AT: Final = 100_000
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
    """Text that is Markdown already, on one line: `bullets` does not escape it."""

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

    Backquotes end a code span. Arguments as for `escape`.
    """
    line = _shortened(text, limit)
    if not line or _UNSAFE_IN_CODE.search(line):
        return Markdown(_SPECIAL.sub(_escaped, line))
    return Markdown(f"`{line}`")


def image(title: str, svg: str) -> Markdown:
    """An SVG drawing as an image that needs no file.

    It is written as it is, which takes fewer characters than base64.
    """
    address = svg.replace("%", "%25").translate(_IN_ADDRESS)
    return Markdown(f"![{escape(title, 60)}](<data:image/svg+xml,{address}>)")


def bullets(items: Iterable[str]) -> str:
    """A list with one line an item; items that are not `Markdown` are escaped.

    Items after the first MOST_ITEMS are counted.
    """
    lines = [f"* {item if isinstance(item, Markdown) else escape(item)}" for item in items]
    if (more := len(lines) - MOST_ITEMS) > 0:
        lines[MOST_ITEMS:] = [f"* … and {more:,} more"]
    return "\n".join(lines)


def stored_size(text: str) -> int:
    """Bytes that a text takes in an event, whose JSON escapes all that is not ASCII."""
    return len(json.dumps(text)) - 2


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
