"""The lines of one game in PGN text, and whether the game ends inside a comment or variation.

python-chess asks for one line after another; the answers end a comment where the next game
begins.
Source: docs/formats/chess.md#unclosed-comments
"""

from __future__ import annotations

import re

from gristmill.chess.raw.text_limits import Budget

_LINE_END = re.compile(rb"\r\n|\n|\r")
# A line that begins a game; a file that was appended to another can bring a byte order mark.
_GAME_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\[Event ")
_GAME_LINE_BYTES = 10
_BLANK_LINES = re.compile(rb"[ \t\r\n]*")


class PgnLines:
    """Text lines of PGN bytes from a position on, with the line ends of Python's text mode.

    data: the text.
    pos: position of the next line.
    cut_comments: a comment ends where the next game begins.
    in_movetext: the tags of the game are over.
    touched_end: the end of the text was read.
    budget: what the game may still cost.
    in_comment: the game ended inside a comment (with `cut_comments` alone).
    """

    def __init__(self, data: bytes, pos: int, cut_comments: bool) -> None:
        self.data, self.pos, self.cut_comments = data, pos, cut_comments
        self.in_movetext = self.touched_end = self.in_comment = False
        self.budget = Budget()
        self._after_blank = self._ended = False

    def readline(self) -> str:
        """The next line, empty at the end of the text. Raises TooMuch beyond the budget."""
        start = self.pos
        found = _LINE_END.search(self.data, start)
        stop, end = found.span() if found else (len(self.data), len(self.data))
        if end >= len(self.data):
            self.touched_end = True
        if self.cut_comments and self.in_movetext:
            if start == end:
                return self._end_of_text()
            # Outside a comment the blank line before would have ended the game.
            if self._after_blank and _GAME_LINE.match(self.data, start):
                self.in_comment = True
                return ""
        self.pos = end
        line = self.data[start:stop]
        self.budget.line(line)
        self._after_blank = not line.strip(b" \t")
        text = line.decode("utf-8", "replace")
        return text + "\n" if end > stop else text

    def _end_of_text(self) -> str:
        """A blank line, which ends the game; inside a comment python-chess then asks again."""
        self.in_comment, self._ended = self._ended, True
        return "" if self.in_comment else "\n"

    def unclosed(self, in_variation: bool) -> str:
        """`comment` or `variation` where the end of a game lies in one, else an empty text.

        in_variation: the game ended inside a variation, outside comments.

        A blank line ends a variation whatever follows (rule of python-chess); only before the
        next game or the end of the text the variation counts as unclosed.
        """
        if self.in_comment:
            return "comment"
        if not (in_variation and self.cut_comments):
            return ""
        blank = _BLANK_LINES.match(self.data, self.pos)
        following = blank.end() if blank else self.pos
        if len(self.data) - following < _GAME_LINE_BYTES:
            self.touched_end = True
        ends = following == len(self.data) or _GAME_LINE.match(self.data, following)
        return "variation" if ends else ""
