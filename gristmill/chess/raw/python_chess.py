"""Games that the compiled reader does not take, read by python-chess.

This is the only module that imports `chess` (GPL-3.0-or-later, the extra `gristmill[chess]`), and
it does so inside functions. Its parser is the rule. It asks for one line after another: in the mode
`current` the answers end a comment where the next game begins, keep tags and moves together that
blank lines part, and spell moves in the letters of PGN. Source: docs/formats/chess.md#pgn-reading
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

from gristmill.chess.format import rows
from gristmill.chess.raw.pgn_text import Budget, Words, read_words, result_of, with_results
from gristmill.contract import GristmillError

_LINE_END = re.compile(rb"\r\n|\n|\r")
# A line that begins a game; a file that was appended to another can bring a byte order mark.
_GAME_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\[Event ")
_BLANK_LINES = re.compile(rb"[ \t\r\n]*")
_NAME = r'\[[ \t]*([A-Za-z0-9][A-Za-z0-9_+#=:-]*)\s*"'
_TAG = re.compile(r"[ \t]*" + _NAME)
# python-chess reads one tag on a line, with one blank in it; PGN has white space between all parts.
_ONE_TAG = re.compile(_TAG.pattern + r'([^\r]*)"[ \t]*\]\s*')
_SOME_TAGS = re.compile(_NAME + r'((?:[^"\\]|\\.)*)"[ \t]*\]')
# What may lie between moves and means nothing: blanks, lines of comments, byte order marks.
_NO_TEXT = re.compile(rb"(?:[ \t\r\n]+|;[^\r\n]*|(?<=[\r\n])%[^\r\n]*|\xef\xbb\xbf)*+")
# What shows that a game continues, besides the number of its next move: a comment, a variation, a
# NAG, a result that ends its line, a move.
_MOVETEXT = re.compile(
    rb"[{($]|(?:1-0|0-1|1/2-1/2|\*)[ \t]*(?:[\r\n{;]|\Z)"
    rb"|(?:[KQRBN]?[a-h]?[1-8]?[x-]?[a-h][1-8](?:=?[QRBN])?|[O0]-[O0](?:-[O0])?)[+#!?]*"
    rb"(?:[\s{(;$]|\Z)"
)
# In a variation, and where moves are not read, any number but that of a first move.
_LATER_NUMBER = re.compile(rb"(?!1[ \t]*\.(?!\.))\d+[ \t]*\.")
IN_VARIATION = re.compile(rb"\)|" + _LATER_NUMBER.pattern)
# More bytes than tell one of these from another.
_ENOUGH_BYTES = 64
# Figurines, which python-chess passes over: it reads a move of a knight as one of a pawn.
_SIGNS = {
    **{0x2654 + n: letter for n, letter in enumerate("KQRBNPKQRBNP")},
    **dict.fromkeys((0xFE0E, 0xFE0F)),  # whether they are pictures
    0xBD: "1/2",
}
_DASH = re.compile(r"(?<=\w)[\u2010-\u2015\u2212](?=\w)")
# With small letters, or those of the Cyrillic alphabet.
_CASTLING = re.compile(r"(?<!\w)[Oo\u041e\u043e]-[Oo\u041e\u043e](-[Oo\u041e\u043e])?(?!\w)")
# A square behind letters that are no piece, as Sf3 of German: python-chess reads f3.
_FOREIGN = re.compile(
    r"(?<!\w)(?![KQRBNPp]?[a-h]?[1-8]?[-x]?[a-h][1-8])[^\W\d_]{1,2}[a-h]?[1-8]?[-x:]?([a-h][1-8])"
)


def in_ascii(text: str) -> str:
    """A text with letters for figurines, and `-` and `1/2` for other signs."""
    return _DASH.sub("-", text.translate(_SIGNS))


def _tags_of(line: str) -> list[str]:
    """The tags of a line that holds nothing else, each as a line that python-chess reads."""
    found = _SOME_TAGS.findall(line)
    if len(found) < 2 or _SOME_TAGS.sub("", line).strip():
        one = _ONE_TAG.fullmatch(line)
        found = [one.groups()] if one else []
    return [f'[{name} "{value}"]\n' for name, value in found]


class PgnLines:
    """Text lines of PGN bytes from a position on, with the line ends of Python's text mode.

    expected: the pattern of the number that the next move may have; None where the game has its
        result, or cannot be read on.
    foreign: moves of pieces with foreign letters, by what python-chess gets in their place.
    """

    def __init__(self, data: bytes, pos: int, current: bool) -> None:
        self.data, self.pos, self.current = data, pos, current
        self.in_movetext = self.touched_end = self.in_comment = False
        self.budget = Budget()
        self.expected: Callable[[], re.Pattern[bytes] | None] = lambda: None
        self._after_blank = self._ended = False
        self._text_at = self._asked_at = -1
        self._head: deque[str] = deque()
        self.movetext: list[str] = []
        self.foreign: dict[str, str] = {}
        if current:
            self._read_head()
        self._movetext_at = self.pos

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
            found = _tags_of(text)
            if text.startswith("[") or found:
                tag = _TAG.match(text)
                if tag and tag[1] in names:
                    # Two blank lines end a game without movetext.
                    self._head += ["\n", "\n"]
                    self.pos = begun
                    return
                lines += found or [text]
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
                self.movetext.append(self._in_english(text) if self.current else text)
                return self.movetext[-1]

    def _in_english(self, text: str) -> str:
        """A line of movetext with the letters and signs of PGN, as far as one can tell."""
        if not text.isascii():
            text = in_ascii(text)
        text = with_results(text)
        text = _CASTLING.sub(lambda found: "O-O-O" if found[1] else "O-O", text)
        return _FOREIGN.sub(self._no_move, text)

    def _no_move(self, found: re.Match[str]) -> str:
        """What python-chess takes for a move that is none, in the place of a move in Sf3's form."""
        self.foreign.setdefault(f"@{found[1]}", found[0])
        return f"@{found[1]}"

    def words(self) -> list[str]:
        """The words of the movetext that was read, with the rules of the mode `current`."""
        return self.data[self._movetext_at : self.pos].decode("utf-8", "replace").split()

    def _end_of_text(self) -> str:
        """A blank line, which ends the game; inside a comment python-chess then asks again."""
        self.in_comment, self._ended = self._ended, True
        return "" if self.in_comment else "\n"

    def _goes_on(self) -> bool:
        """Whether the game continues behind a blank line; inside a comment the answer is one."""
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
        """`comment` or `variation` where the end of a game lies in one, else an empty text."""
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


class MissingPythonChess(GristmillError):
    """A game needs python-chess, and it is not installed."""

    def __init__(self) -> None:
        super().__init__("only python-chess can read this game: pip install 'gristmill[chess]'")


def _chess() -> ModuleType:
    try:
        import chess
        import chess.pgn
        import chess.variant
    except ImportError as error:
        raise MissingPythonChess() from error
    return chess


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep python-chess from logging the errors that ParsedGame records."""
    logger = logging.getLogger("chess.pgn")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


@dataclass
class ParsedGame:
    """One game as python-chess reads it.

    headers: tags, with `Result` filled from the movetext where it was absent or `*`.
    header_result: the tag `Result` before it was filled, `*` where there is none.
    said: what the words between the moves say; nothing in the mode `reference`.
    words: of the movetext, where the rules are another variant's and the moves are not read.
    """

    headers: dict[str, str] = field(default_factory=dict)
    moves: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    terminators: list[str] = field(default_factory=list)
    header_result: str = "*"
    board: Any = None
    unclosed: str = ""
    words: list[str] = field(default_factory=list)
    said: Words = field(default_factory=Words)
    end: int = 0

    @cached_property
    def verdict(self) -> str:
        """The result on the board without claims of a draw, `*` for an open game."""
        return str(self.board.result(claim_draw=False)) if self.board is not None else "*"

    @cached_property
    def claimed(self) -> str:
        """The result on the board with claims of a draw, `*` for an open game."""
        return str(self.board.result(claim_draw=True)) if self.board is not None else "*"

    @property
    def result(self) -> str:
        """The tag `Result` after filling, `*` where there is none."""
        return self.headers.get("Result", "*")


class _Visitor:
    """Keeps tags, main line, errors and the last board of one game, for python-chess."""

    def __init__(self, chess: ModuleType, lines: PgnLines) -> None:
        self.lines, self.game, self.board = lines, ParsedGame(), None
        self.headers: Any = chess.pgn.Headers({})
        self.skip: Any = chess.pgn.SKIP
        self.tokens: re.Pattern[str] = chess.pgn.MOVETEXT_REGEX
        self.in_variation = False
        self.is_skipped = False
        lines.expected = self.next_number

    def next_number(self) -> re.Pattern[bytes] | None:
        """The number that the next move may have; see `PgnLines.expected`."""
        if self.is_skipped:
            return _LATER_NUMBER
        if self.board is None or self.game.errors or self.game.terminators:
            return None
        if self.in_variation:
            return IN_VARIATION
        number = b"%d" % self.board.fullmove_number
        return re.compile(number + (rb"[ \t]*\." if self.board.turn else rb"[ \t]*\.[ \t]*\."))

    def begin_headers(self) -> Any:
        return self.headers

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self.lines.budget.tag()
        if self.lines.current and tagname == "Result":
            tagvalue = result_of(in_ascii(tagvalue))
        self.headers[tagname] = tagvalue

    def end_headers(self) -> Any:
        self.game.header_result = self.headers.get("Result", "*")
        self.lines.in_movetext = True
        self.is_skipped = self.lines.current and rows.is_other_variant(self.headers)
        return self.skip if self.is_skipped else None

    def begin_variation(self) -> Any:
        self.in_variation = True
        return self.skip

    def end_variation(self) -> None:
        self.in_variation = False

    def visit_board(self, board: Any) -> None:
        self.board = board

    def visit_move(self, board: Any, move: Any) -> None:
        self.lines.budget.ply()
        self.game.moves.append(move.uci())

    def visit_result(self, result: str) -> None:
        self.game.terminators.append(result)
        if self.headers.get("Result", "*") == "*":
            self.headers["Result"] = result

    def handle_error(self, error: Exception) -> None:
        self.lines.budget.error()
        text = str(error)
        for taken, move in self.lines.foreign.items():
            if f"'{taken}'" in text:
                text = f"{move!r} names no piece by K, Q, R, B or N"
        self.game.errors.append(text)

    def result(self) -> ParsedGame:
        self.game.headers = dict(self.headers)
        self.game.unclosed = self.lines.unclosed(self.in_variation)
        if self.is_skipped:
            self.game.words = self.lines.words()
        elif self.lines.current:
            said = self.game.said = read_words("".join(self.lines.movetext), self.tokens)
            if said.fault and said.plies <= len(self.game.moves):
                self.game.errors = [said.fault]
                del self.game.moves[said.plies :]
        self.game.board = None if self.game.errors else self.board
        return self.game


def read_game(data: bytes, pos: int, *, current: bool = True) -> tuple[ParsedGame | None, bool]:
    """Read one game.

    current: the rules of the mode `current`; True by default. False lets a comment continue to the
        next `}`, and two blank lines part tags from moves, as in python-chess alone.

    Returns the game, or None at the end of the text; and whether the reader touched the
    end of `data`, so that more data could change the game.
    Raises MissingPythonChess where python-chess is absent, and ValueError (TooMuch, where it
    passes a limit) for a game that cannot be read.
    """
    chess = _chess()
    lines = PgnLines(data, pos, current)
    # The methods of python-chess, where `_Visitor` has none.
    visitor = type("Visitor", (_Visitor, chess.pgn.BaseVisitor), {})
    with _quiet():
        game: ParsedGame | None = chess.pgn.read_game(lines, Visitor=lambda: visitor(chess, lines))
    if game is not None:
        game.end = lines.pos
    return game, lines.touched_end


def claimed_result(moves: list[str]) -> tuple[str, str]:
    """The result on the board after a game, without and with claims of a draw."""
    board = _chess().Board()
    for move in moves:
        board.push_uci(move)
    return board.result(claim_draw=False), board.result(claim_draw=True)


def phase_codes(moves: list[str]) -> bytes:
    """The phase codes of a game, one byte a ply, 0 from the first illegal move on.

    Raises MissingPythonChess where python-chess is absent.
    """
    chess = _chess()
    board, codes = chess.Board(), bytearray(len(moves))
    for n, text in enumerate(moves):
        try:
            move = chess.Move.from_uci(text)
        except ValueError:
            break
        if not board.is_legal(move):
            break
        board.push(move)
        codes[n] = _phase_code(chess, board, n)
    return bytes(codes)


def _phase_code(chess: ModuleType, board: Any, ply: int) -> int:
    minor = chess.popcount(board.knights | board.bishops)
    material = 3 * minor + 5 * chess.popcount(board.rooks) + 9 * chess.popcount(board.queens)
    if material <= 14:
        return 3
    if not board.queens and material <= 20:
        return 7
    return 1 if ply < 20 and board.castling_rights else 2
