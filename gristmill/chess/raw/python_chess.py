"""Games that the compiled reader does not take, read by python-chess.

This is the only module that imports `chess` (GPL-3.0-or-later, the extra
`gristmill[chess]`), and it does so inside functions. The behaviour of its parser is
the rule: docs/formats/chess.md#pgn-reading

Source: `docs/formats/chess.md#unclosed-comments`, `docs/formats/chess.md#tags-and-moves-apart`,
`docs/formats/chess.md#board-verdict`, `docs/formats/chess.md#phase-codes`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

from gristmill.chess.raw.pgn_lines import IN_VARIATION, PgnLines
from gristmill.contract import GristmillError


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
    moves: main line in UCI, up to the first error.
    errors: texts of the parser's errors.
    terminators: results in the movetext, in order.
    header_result: the tag `Result` before it was filled, `*` where there is none.
    board: the position after the moves; None after an error.
    unclosed: `comment` or `variation` where the game ends in one, else empty.
    end: position after the game in the text.
    """

    headers: dict[str, str] = field(default_factory=dict)
    moves: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    terminators: list[str] = field(default_factory=list)
    header_result: str = "*"
    board: Any = None
    unclosed: str = ""
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
        self.in_variation = False
        lines.expected = self.next_number

    def next_number(self) -> re.Pattern[bytes] | None:
        """The number that the next move may have; see `PgnLines.expected`."""
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
        self.headers[tagname] = tagvalue

    def end_headers(self) -> None:
        self.game.header_result = self.headers.get("Result", "*")
        self.lines.in_movetext = True

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
        self.game.errors.append(str(error))

    def result(self) -> ParsedGame:
        self.game.headers = dict(self.headers)
        self.game.unclosed = self.lines.unclosed(self.in_variation)
        self.game.board = None if self.game.errors else self.board
        return self.game


def read_game(data: bytes, pos: int, *, current: bool = True) -> tuple[ParsedGame | None, bool]:
    """Read one game.

    current: the rules of the mode `current`; True by default. False lets a comment go on to the
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
    """The result on the board after a game, without and with claims of a draw.

    Raises MissingPythonChess where python-chess is absent.
    """
    board = _chess().Board()
    for move in moves:
        board.push_uci(move)
    return board.result(claim_draw=False), board.result(claim_draw=True)


def phase_codes(moves: list[str]) -> bytes:
    """The phase codes of a game, one byte a ply, 0 from the first illegal move on.

    moves: UCI moves from the start position.

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
