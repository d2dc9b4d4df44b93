"""Output of these commands to the terminal."""

from __future__ import annotations

import sys

from rich.console import Console

# A table in a file or a pipe has one line for each row.
console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def say(line: str) -> None:
    """Print one line without breaking it.

    line: text with rich's markup; escape names and reasons in it, which may contain brackets.
    """
    console.print(line, soft_wrap=True)
