"""Output of these commands to the terminal."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.markup import escape

from gristmill.printable import plain

# A file or a pipe has no width: there is room for a table, unless COLUMNS says otherwise.
_HAS_WIDTH = sys.stdout.isatty() or "COLUMNS" in os.environ
console = Console(width=None if _HAS_WIDTH else 160, highlight=False)


def say(line: str) -> None:
    """Print one line without breaking it.

    line: text with rich's markup; names and reasons in it, which may come from drops, go
        through `shown`.
    """
    console.print(line, soft_wrap=True)


def shown(text: str) -> str:
    """Returns text of any origin as rich's markup that shows it on one line.

    text: any string. Characters that a terminal would obey are replaced, and a long text is cut
        with a count.
    """
    return escape(plain(" ".join(text.split())))


def shown_lines(text: str) -> str:
    """Returns text of any origin as rich's markup that shows it on its own lines.

    Lines after the first are indented, so that none passes for a line of the command; what `shown`
    says holds for the rest.
    """
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return escape(plain("\n  ".join(filter(None, lines))))
