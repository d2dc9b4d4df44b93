"""How much of an untrusted file is read, and unpacking within these limits.

Source: `docs/drops.md#limits`.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, GristmillError, os_reason

_BLANK_FOR_EACH: Final = 4


@dataclass(frozen=True)
class Limits:
    """What a file of a drop may hold; a family narrows them where its format allows.

    bytes: of one file; default 1 TiB.
    text_bytes: of its text after unpacking; default 4 TiB.
    ratio: bytes of text for each packed byte; default 200.
    any_ratio_bytes: up to this size of the text its ratio does not count; default 16 MiB.
    rows: rows or lines of one file; default 2**32.
    blank_lines: that a text may have besides four for each other line; default 10,000.
    line_bytes: of one line, or of one member of a large JSON file; default 64 MiB.
    depth: levels of nesting; default 256.
    values: of one line, row or member; default 2**20. Opening brackets and commas outside of
        strings are counted, in a table the delimiters of a row.
    digits: of one number; default 400.
    seconds: for one look at a drop, or for one piece of work in a child process;
        default 10 minutes.
    memory_bytes: of a child process that reads the file; default 2 GiB.
    """

    bytes: int = 1 << 40
    text_bytes: int = 1 << 42
    ratio: int = 200
    any_ratio_bytes: int = 16 << 20
    rows: int = 1 << 32
    blank_lines: int = 10_000
    line_bytes: int = 1 << 26
    depth: int = 256
    values: int = 1 << 20
    digits: int = 400
    seconds: float = 600.0
    memory_bytes: int = 2 << 30

    def unpacked(self, packed: int) -> int:
        """Bytes of text that a file may unpack to."""
        return min(self.text_bytes, max(self.any_ratio_bytes, self.ratio * packed))

    def check_blank(self, blank: int, others: int, path: Path) -> None:
        """Raise BadInput where a text has more blank lines than it may: each costs as a row."""
        if blank > self.blank_lines + _BLANK_FOR_EACH * others:
            raise BadInput(
                path,
                f"has {blank:,} blank lines and {others:,} others: a text may have "
                f"{self.blank_lines:,} blank lines, and {_BLANK_FOR_EACH} more for each other "
                "line: take them out",
            )


LIMITS = Limits()


def bounded(texts: Iterable[bytes], path: Path, most: int) -> Iterator[bytes]:
    """The same texts, as long as they are not larger than allowed.

    Raises BadInput at the first byte more.
    """
    size = 0
    for text in texts:
        size += len(text)
        if size > most:
            raise BadInput(
                path,
                f"unpacks to more than {most:,} bytes, which is too much for its size: it looks "
                "like a decompression bomb",
            )
        yield text


_SHOWN = 500
_FRAMES = 20


def explained(error: Exception) -> tuple[str, str]:
    """(why a drop is refused that raised this error, the traceback of an unexpected error)."""
    if isinstance(error, GristmillError):
        return str(error), ""
    if isinstance(error, OSError) and error.filename is not None:
        return unreadable(error), ""
    trace = "".join(traceback.format_exception(error, limit=-_FRAMES))
    return f"cannot be read: {type(error).__name__}: {str(error)[:_SHOWN]}", trace


def unreadable(error: OSError) -> str:
    """Why a drop is refused that could not be read."""
    return f"{error.filename}: cannot be read: {os_reason(error)}"
