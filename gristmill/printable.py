"""Text that is safe to print: nothing in it that a terminal obeys or SVG forbids."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

# One character as a page shows it: an escaped one of Markdown and an entity stay whole. Atomic:
# otherwise a row of backslashes can be cut in more ways than anyone can try.
_SHOWN: Final = r"(?>\\\S|&\w+;|\S)"
_BREAK: Final = "\N{ZERO WIDTH SPACE}"


def printable(text: str) -> str:
    """`text` with U+FFFD in place of each character that is not printable."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def cut(text: str, most: int) -> str:
    """`text`, or its first `most` characters and how many more there are."""
    if len(text) <= most:
        return text
    more = len(text) - most
    return f"{text[:most]}… and {more:,} more character{'' if more == 1 else 's'}"


def command(name: str, *arguments: str) -> str:
    """Returns a command of `gristmill` that a shell takes as it is."""
    # The command would take a value that begins with a dash for an option.
    values = ["--", *arguments] if any(each.startswith("-") for each in arguments) else arguments
    return " ".join(["gristmill", name, *map(shlex.quote, values)])


def plain(text: str, most: int = 2000) -> str:
    """Untrusted text for a place that shows it as it is, such as an event's description.

    text: any string. Line ends stay; other characters that are not printable become U+FFFD.
    most: characters that are kept; how many more there are is said. Default 2,000.
    """
    return "\n".join(map(printable, cut(text.replace("\r\n", "\n"), most).split("\n")))


def breakable(text: str, longest: int = 24) -> str:
    """Returns text in which a page may break long words between lines; it looks the same.

    A column of a table is at least as wide as its longest word, and pages are as wide as their
    tables.

    text: that `plain` or `markdown.escape` returned. A word that is longer gets zero-width
        spaces: after a `/` or `_` where one is near, else where a line is full.
    longest: characters of a word that is not broken, and between two breaks. Default 24.
    """
    line = re.compile(rf"{_SHOWN}{{1,{longest}}}(?<=[/_])|{_SHOWN}{{1,{longest}}}")
    word = re.compile(rf"\S{{{longest + 1},}}")
    return word.sub(lambda found: _BREAK.join(line.findall(found[0])), text)


def unbroken(text: str) -> str:
    """Returns the text that `breakable` was given, where `plain` made that."""
    return text.replace(_BREAK, "")


def is_utf8(path: Path) -> bool:
    """Whether the bytes of a path are UTF-8; what reads Parquet takes no other."""
    return not any("\udc80" <= char <= "\udcff" for char in str(path))
