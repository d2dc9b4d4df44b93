"""How large the text of a PGN, of a game and of a line may be, whoever wrote it.

The limits bound memory and time. They are far beyond every public PGN.
Source: docs/formats/chess.md#text-limits
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gristmill.contract import BadInput

LINE_BYTES = 1 << 20
GAME_BYTES = 16 << 20
TAGS = 1_000
PLIES = 20_000
ERRORS = 1_000
LINES = 1 << 20
BLANK_LINES = 10_000
# python-chess copies the rest of a line at each comment in it.
COMMENT_WORK = 1 << 28


class TooMuch(ValueError):
    """A game passes a limit; the text says which."""


def with_short_lines(reads: Iterable[bytes], path: Path, at: int = 0) -> Iterator[bytes]:
    """The same reads, as long as no line in them is longer than LINE_BYTES.

    reads: pieces of a text in order, of any size.
    path: the file, for the error.
    at: byte offset of the first read in the file; a line begins there.

    Raises BadInput for a longer line, before the read that completes it is yielded.
    """
    begun = at
    for data in reads:
        end = at + len(data)
        while end - begun > LINE_BYTES:
            cut = _last_line_end(data, max(begun - at, 0), begun - at + LINE_BYTES + 1)
            if cut < 0:
                rule = f"the line at byte {begun} has more than {LINE_BYTES} bytes; break it"
                raise BadInput(path, rule)
            begun = at + cut + 1
        cut = _last_line_end(data, max(begun - at, 0), len(data))
        begun = at + cut + 1 if cut >= 0 else begun
        at = end
        yield data


def _last_line_end(data: bytes, start: int, stop: int) -> int:
    newline = data.rfind(b"\n", start, stop)
    return newline if newline >= 0 else data.rfind(b"\r", start, stop)


class Budget:
    """What one game may still cost python-chess.

    Each method raises TooMuch where the game passes the limit.
    """

    def __init__(self) -> None:
        self.tags = self.plies = self.errors = self.lines = self.blank = self.work = 0

    def tag(self) -> None:
        """One more tag."""
        self.tags += 1
        if self.tags > TAGS:
            raise TooMuch(f"it has more than {TAGS} tags")

    def ply(self) -> None:
        """One more ply."""
        self.plies += 1
        if self.plies > PLIES:
            raise TooMuch(f"it has more than {PLIES} plies")

    def error(self) -> None:
        """One more token that cannot be read."""
        self.errors += 1
        if self.errors > ERRORS:
            raise TooMuch(f"more than {ERRORS} of its moves cannot be read")

    def line(self, line: bytes) -> None:
        """One more line."""
        self.lines += 1
        if self.lines > LINES:
            raise TooMuch(f"it has more than {LINES} lines")
        self.blank += not line.strip()
        if self.blank > BLANK_LINES:
            raise TooMuch(f"it has more than {BLANK_LINES} blank lines; is a comment left open?")
        self.work += line.count(b"{") * len(line)
        if self.work > COMMENT_WORK:
            raise TooMuch("it has lines with too many comments; break the lines")
