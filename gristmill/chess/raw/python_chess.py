"""python-chess as the oracle: games that the compiled scanner does not take.

The only module that imports `chess` (GPL-3.0-or-later, the extra
`gristmill[chess]`), and only inside functions. The rules of reading are the
behaviour of its parser (docs/formats/chess.md#pgn-reading), so what it says is right.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from gristmill.contract import GristmillError


class MissingPythonChess(GristmillError):
    """python-chess is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "this game needs python-chess to be decided: pip install 'gristmill[chess]'"
        )


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
    """Keep python-chess from logging the errors that we record ourselves."""
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

    moves: UCI of the main line up to the first error. verdict and claimed: the
    board's result without and with claims for a draw, `*` if the game is open.
    """

    headers: dict[str, str] = field(default_factory=dict)
    moves: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    terminators: list[str] = field(default_factory=list)
    header_result: str = "*"
    verdict: str = "*"
    claimed: str = "*"
    end: int = 0

    @property
    def result(self) -> str:
        return self.headers.get("Result", "*")


class _Lines:
    """Text lines of PGN bytes from a position on, line ends as in Python's text mode."""

    def __init__(self, data: bytes, pos: int) -> None:
        self.data, self.pos, self.touched_end = data, pos, False

    def readline(self) -> str:
        data, start = self.data, self.pos
        newline = data.find(b"\n", start)
        stop = newline if newline >= 0 else len(data)
        carriage = data.find(b"\r", start, stop)
        if carriage >= 0:
            stop = carriage
        end = min(stop + 1, len(data))
        if carriage >= 0 and data[end : end + 1] == b"\n":
            end += 1
        if end >= len(data):
            self.touched_end = True
        self.pos = end
        if start == end:
            return ""
        text = data[start:stop].decode("utf-8", "replace")
        return text + "\n" if end > stop else text


def _visitor(chess: ModuleType) -> Any:
    class Collect(chess.pgn.BaseVisitor):  # type: ignore[misc, name-defined]
        """Keeps tags, main line, errors and the last board of one game."""

        def begin_game(self) -> None:
            self.game = ParsedGame()
            self.board: Any = None

        def begin_headers(self) -> Any:
            self.headers = chess.pgn.Headers({})
            return self.headers

        def visit_header(self, tagname: str, tagvalue: str) -> None:
            self.headers[tagname] = tagvalue

        def end_headers(self) -> None:
            self.game.header_result = self.headers.get("Result", "*")

        def begin_variation(self) -> Any:
            return chess.pgn.SKIP

        def visit_board(self, board: Any) -> None:
            self.board = board

        def visit_move(self, board: Any, move: Any) -> None:
            self.game.moves.append(move.uci())

        def visit_result(self, result: str) -> None:
            self.game.terminators.append(result)
            if self.headers.get("Result", "*") == "*":
                self.headers["Result"] = result

        def handle_error(self, error: Exception) -> None:
            self.game.errors.append(str(error))

        def result(self) -> ParsedGame:
            self.game.headers = dict(self.headers)
            if self.board is not None and not self.game.errors:
                self.game.verdict = self.board.result(claim_draw=False)
                self.game.claimed = self.board.result(claim_draw=True)
            return self.game

    return Collect


def read_game(data: bytes, pos: int) -> tuple[ParsedGame | None, bool]:
    """The game that starts at or after `pos`, and whether the end of `data` came in sight.

    None at the end of the text. `end` of the game is the position from which
    to read on. Raises MissingPythonChess.
    """
    chess = _chess()
    lines = _Lines(data, pos)
    with _quiet():
        game: ParsedGame | None = chess.pgn.read_game(lines, Visitor=_visitor(chess))
    if game is not None:
        game.end = lines.pos
    return game, lines.touched_end


def claimed_result(moves: list[str]) -> tuple[str, str]:
    """The board's result after legal moves from the start, without and with claims."""
    board = _chess().Board()
    for move in moves:
        board.push_uci(move)
    return board.result(claim_draw=False), board.result(claim_draw=True)


def phase_codes(moves: list[str]) -> bytes:
    """The phase code after each UCI move from the start, by replay (docs/formats/chess.md#phases).

    0 from the first illegal move on; bit 2 for the second endgame rule.
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
        material = sum(
            weight * chess.popcount(pieces)
            for weight, pieces in ((3, board.knights | board.bishops), (5, board.rooks))
        ) + 9 * chess.popcount(board.queens)
        if material <= 14:
            codes[n] = 3
        elif not board.queens and material <= 20:
            codes[n] = 7
        else:
            codes[n] = 1 if n < 20 and board.castling_rights else 2
    return bytes(codes)
