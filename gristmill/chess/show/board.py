"""A position as a board, drawn as SVG and for a terminal, with the squares of the last move marked.

The SVG is small enough for Dagster to show it inline: see `gristmill.markdown.INLINE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gristmill.svg import OVERVIEW, SOFT, small_card, small_text

if TYPE_CHECKING:
    from rich.text import Text

_LIGHT, _DARK, _LAST, _INK = "#d9c7a7", "#a8825c", "#c9b037", "#111111"
_CELL, _TOP = 22, 46
# Outlines for white, so that colours are not needed to tell the sides.
_GLYPHS = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))


def squares_after(moves: Sequence[str]) -> list[str]:
    """The pieces on the 64 squares after some moves.

    moves: legal UCI moves from the start position. A text that is no move of a piece, such
        as `0000`, is passed over.
    Returns one letter a square from a1, b1 to h8: upper case for White, empty for no piece.
    """
    back = "rnbqkbnr"
    board = [*back.upper(), *"P" * 8, *[""] * 32, *"p" * 8, *back]
    for move in moves:
        if not (places := _places(move)):
            continue
        origin, target = places
        piece = board[origin]
        if piece.lower() == "p" and move[0] != move[2] and not board[target]:
            board[target + (-8 if piece == "P" else 8)] = ""  # en passant
        if piece.lower() == "k" and abs(target - origin) == 2:
            rook = (target + 1, target - 1) if target > origin else (target - 2, target + 1)
            board[rook[0]], board[rook[1]] = "", board[rook[0]]
        promoted = move[4:5]
        if promoted:
            piece = promoted.upper() if piece.isupper() else promoted
        board[origin], board[target] = "", piece
    return board


def _places(move: str) -> list[int]:
    """The two squares of a move; none for a text that is no move of a piece."""
    if len(move) < 4 or move[0] not in "abcdefgh" or move[2] not in "abcdefgh":
        return []
    return [ord(move[at]) - 97 + 8 * (ord(move[at + 1]) - 49) for at in (0, 2)]


def caption(moves: Sequence[str], phase: str = "") -> str:
    """A line on the position after some moves: the ply, the phase if it is given, whose turn."""
    turn = "black" if len(moves) % 2 else "white"
    return f"ply {len(moves)} · {phase} · {turn}" if phase else f"ply {len(moves)} · {turn} to move"


def board_svg(moves: Sequence[str], title: str, phase: str = "") -> str:
    """Draw the position after some moves."""
    held = [(square, piece) for square, piece in enumerate(squares_after(moves)) if piece]
    files = " ".join(str(square % 8) for square, _ in held)
    rows = " ".join(str(7 - square // 8) for square, _ in held)
    glyphs = "".join(_GLYPHS[piece] for _, piece in held)
    dark = "".join(f"M{1 - row % 2} {row}.5h{7 + row % 2}" for row in range(8))
    places = _places(moves[-1]) if moves else []
    last = "".join(f"M{square % 8} {7 - square // 8}.5h1" for square in places)
    body = [
        small_text(10, 20, title, " font-weight='700'"),
        small_text(10, 38, caption(moves, phase), f" fill='{SOFT}'"),
        f"<g transform='translate({(OVERVIEW - 8 * _CELL) // 2} {_TOP}) scale({_CELL})'>",
        f"<path d='M0 4h8' stroke='{_LIGHT}' stroke-width='8'/>",
        f"<path d='{dark}' stroke='{_DARK}' stroke-dasharray='1'/>",
        f"<path d='{last}' stroke='{_LAST}'/>" * bool(last),
        f"<text x='{files}' y='{rows}' transform='translate(.5 .82)' font-size='.86'",
        f" text-anchor='middle' fill='{_INK}'>{glyphs}</text></g>",
    ]
    return small_card(_TOP + 8 * _CELL + 10, body)


def board_text(moves: Sequence[str]) -> Text:
    """The position after some moves, for a terminal."""
    from rich.style import Style
    from rich.text import Text

    squares, text = squares_after(moves), Text(no_wrap=True)
    last = _places(moves[-1]) if moves else []
    for rank in range(7, -1, -1):
        text.append(f"{rank + 1} ")
        for square in range(8 * rank, 8 * rank + 8):
            ground = _LIGHT if (rank + square) % 2 else _DARK
            style = Style(color=_INK, bgcolor=_LAST if square in last else ground)
            text.append(f" {_GLYPHS.get(squares[square], ' ')} ", style)
        text.append("\n")
    return text.append("   a  b  c  d  e  f  g  h ")
