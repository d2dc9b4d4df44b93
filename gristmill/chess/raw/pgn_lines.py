"""The lines of one game in PGN text, and whether the game ends inside a comment or variation.

python-chess asks for one line after another. In the mode `current` the answers end a comment
where the next game begins, and keep tags and moves together that blank lines part.
Source: docs/formats/chess.md#unclosed-comments, docs/formats/chess.md#tags-and-moves-apart
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from gristmill.chess.raw.text_limits import Budget

_LINE_END = re.compile(rb"\r\n|\n|\r")
# A line that begins a game; a file that was appended to another can bring a byte order mark.
_GAME_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\[Event ")
_BLANK_LINES = re.compile(rb"[ \t\r\n]*")
_TAG = re.compile(r'\[([A-Za-z0-9][A-Za-z0-9_+#=:-]*)\s+"')
# What may lie between moves and means nothing: blanks, lines of comments, byte order marks.
_NO_TEXT = re.compile(rb"(?:[ \t\r\n]+|;[^\r\n]*|(?<=[\r\n])%[^\r\n]*|\xef\xbb\xbf)*+")
# What shows that a game goes on, besides the number of its next move: a comment, a variation, a
# NAG, a result that ends its line, a move.
_MOVETEXT = re.compile(
    rb"[{($]|(?:1-0|0-1|1/2-1/2|\*)[ \t]*(?:[\r\n{;]|\Z)"
    rb"|(?:[KQRBN]?[a-h]?[1-8]?[x-]?[a-h][1-8](?:=?[QRBN])?|[O0]-[O0](?:-[O0])?)[+#!?]*"
    rb"(?:[\s{(;$]|\Z)"
)
# In a variation any number but that of a first move.
IN_VARIATION = re.compile(rb"\)|(?!1[ \t]*\.(?!\.))\d+[ \t]*\.")
# More bytes than tell one of these from another.
_ENOUGH_BYTES = 64


class PgnLines:
    """Text lines of PGN bytes from a position on, with the line ends of Python's text mode.

    current: the rules of the mode `current`.
    in_movetext: the tags of the game are over.
    touched_end: the end of the text was read.
    budget: what the game may still cost.
    in_comment: the game ended inside a comment (with `current` alone).
    expected: the pattern of the number that the next move may have; None where the game has its
        result, or cannot be read on.
    """

    def __init__(self, data: bytes, pos: int, current: bool) -> None:
        self.data, self.pos, self.current = data, pos, current
        self.in_movetext = self.touched_end = self.in_comment = False
        self.budget = Budget()
        self.expected: Callable[[], re.Pattern[bytes] | None] = lambda: None
        self._after_blank = self._ended = False
        self._text_at = self._asked_at = -1
        self._head: deque[str] = deque()
        if current:
            self._read_head()

    def _line(self, start: int) -> tuple[str, int]:
        """The line at a position, and the position after it."""
        found = _LINE_END.search(self.data, start)
        stop, end = found.span() if found else (len(self.data), len(self.data))
        if end >= len(self.data):
            self.touched_end = True
        text = self.data[start:stop].decode("utf-8", "replace")
        return text + "\n" if end > stop else text, end

    def _read_head(self) -> None:
        """Take the tags up to the movetext, or up to tags that the next game begins with."""
        names: set[str] = set()
        lines: list[str] = []  # since the last blank line, which `begun` follows
        begun = pos = self.pos
        while True:
            text, end = self._line(pos)
            text = text.removeprefix("\ufeff")
            if text.startswith("["):
                tag = _TAG.match(text)
                if tag and tag[1] in names:
                    # Two blank lines end a game without movetext.
                    self._head += ["\n", "\n"]
                    self.pos = begun
                    return
                lines.append(text)
            elif text.isspace() or not text:
                names |= {tag[1] for line in lines if (tag := _TAG.match(line))}
                self._head += lines
                lines, begun = [], end
            elif not text.startswith(("%", ";")):
                break
            self.budget.line(self.data[pos:end].rstrip(b"\r\n"))
            pos = end
            if pos >= len(self.data):
                break
        self._head += lines
        self.pos = pos

    def readline(self) -> str:
        """The next line, empty at the end of the text. Raises TooMuch beyond the budget."""
        if self._head:
            return self._head.popleft()
        while True:
            start = self.pos
            if self.current and self.in_movetext:
                if start >= len(self.data):
                    self.touched_end = True
                    return self._end_of_text()
                # Outside a comment the blank line before would have ended the game.
                if self._after_blank and _GAME_LINE.match(self.data, start):
                    self.in_comment = True
                    return ""
            text, end = self._line(start)
            if self.current:
                text = text.removeprefix("\ufeff")
            if self.current and self.in_movetext and self._asked_at < start and _TAG.match(text):
                # The next game; inside a comment python-chess asks for the line again.
                self._asked_at = start
                return "\n"
            self.pos = end
            self.budget.line(self.data[start : self.pos].rstrip(b"\r\n"))
            self._after_blank = not text.strip(" \t\n")
            if not (self.in_movetext and text.isspace() and self._goes_on()):
                return text

    def _end_of_text(self) -> str:
        """A blank line, which ends the game; inside a comment python-chess then asks again."""
        self.in_comment, self._ended = self._ended, True
        return "" if self.in_comment else "\n"

    def _goes_on(self) -> bool:
        """Whether the game goes on behind a blank line; inside a comment the answer is one.

        A blank line inside a comment means nothing to python-chess.
        """
        number = self.expected() if self.current else None
        if number is None:
            return False
        if self._text_at < self.pos:  # found once for all blank lines before it
            found = _NO_TEXT.match(self.data, self.pos)
            self._text_at = found.end() if found else self.pos
        if len(self.data) - self._text_at < _ENOUGH_BYTES:
            self.touched_end = True
        at = self._text_at
        return bool(number.match(self.data, at) or _MOVETEXT.match(self.data, at))

    def unclosed(self, in_variation: bool) -> str:
        """`comment` or `variation` where the end of a game lies in one, else an empty text.

        Only before the next game or the end of the text the variation counts as unclosed.
        """
        if self.in_comment:
            return "comment"
        if not (in_variation and self.current):
            return ""
        blank = _BLANK_LINES.match(self.data, self.pos)
        following = blank.end() if blank else self.pos
        if len(self.data) - following < _ENOUGH_BYTES:
            self.touched_end = True
        ends = following == len(self.data) or _GAME_LINE.match(self.data, following)
        return "variation" if ends else ""
