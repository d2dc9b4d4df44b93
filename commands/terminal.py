"""How these commands write to the terminal."""

from __future__ import annotations

import sys

from rich.console import Console

# A table that goes into a file or a pipe keeps one line a row.
console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def say(line: str) -> None:
    """Print one line without breaking it; escape names and reasons that may hold brackets.

    line: text with rich's markup.
    """
    console.print(line, soft_wrap=True)
