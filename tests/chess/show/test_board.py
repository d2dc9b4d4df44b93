"""Boards: the pieces of python-chess, the last move, the phase, in an SVG that is shown inline."""

import xml.etree.ElementTree as ET

import chess

from gristmill import markdown
from gristmill.chess.samples import make_games
from gristmill.chess.show.board import board_svg, board_text, squares_after
from gristmill.svg import OVERVIEW
from tests.drawings import is_right

SVG = "{http://www.w3.org/2000/svg}"


def test_boards_are_those_of_python_chess_and_small_enough_at_each_ply() -> None:
    for game in make_games("2024-01", 12, 9):
        board, uci = chess.Board(), []
        for san in game.moves:
            uci.append(board.push_san(san).uci())
            svg = board_svg(uci, "W" * 90, "middlegame")
            assert len(markdown.image("ply 100", svg)) <= markdown.INLINE
        expected = [board.piece_at(square) for square in range(64)]
        assert squares_after(uci) == [piece.symbol() if piece else "" for piece in expected]


def test_a_board_has_each_piece_on_its_square_and_marks_the_last_move() -> None:
    moves = ["e2e4", "d7d5", "e4d5", "d8d5"]
    svg = board_svg(moves, "<b>&" + "t" * 90, "opening")
    is_right(svg, OVERVIEW)
    title, line, pieces = ET.fromstring(svg).iter(f"{SVG}text")
    assert (title.text or "").startswith("<b>&tt")
    assert line.text == "ply 4 · opening · white"
    found = [""] * 64
    places = (pieces.attrib[axis].split() for axis in "xy")
    for file, row, glyph in zip(*places, pieces.text or "", strict=True):
        found[8 * (7 - int(row)) + int(file)] = glyph
    letters = dict(zip("♔♕♖♗♘♙♚♛♜♝♞♟", "KQRBNPkqrbnp", strict=True))
    assert [letters.get(glyph, "") for glyph in found] == squares_after(moves)
    _, dark, last = (path.attrib for path in ET.fromstring(svg).findall(f".//{SVG}path"))
    # From the left in each row from the top: h8 and a1 are dark.
    assert dark["d"].split("M")[1:3] == ["1 0.5h7", "0 1.5h8"]
    assert dark["stroke-dasharray"] == "1"
    assert last["d"] == "M3 0.5h1M3 3.5h1"


def test_a_board_of_a_terminal_has_the_same_squares() -> None:
    text = board_text(["e2e4", "d7d5", "e4d5"])
    ranks = text.plain.splitlines()
    assert ranks[0] == "8  ♜  ♞  ♝  ♛  ♚  ♝  ♞  ♜ "
    assert ranks[3:5] == ["5           ♙             ", "4                         "]
    assert ranks[8].split() == list("abcdefgh")
    grounds = [str(span.style).rpartition(" ")[2] for span in text.spans]
    light, dark, last = "#d9c7a7", "#a8825c", "#c9b037"
    assert grounds[:9] == [light, dark] * 4 + [dark]
    assert [at for at, ground in enumerate(grounds) if ground == last] == [27, 36]


def test_a_text_that_is_no_move_is_passed_over() -> None:
    assert squares_after(["0000", "e2e4", "P@e5"]) == squares_after(["e2e4"])
    assert board_svg(["e2e4", "0000"], "").count("<path") == 2
    assert "ply 0 · white to move" in board_svg([], "")
    assert "ply 1 · black to move" in board_svg(["e2e4"], "")
    assert len(board_text([]).plain.splitlines()) == 9


def test_a_pawn_taken_in_passing_leaves_its_square() -> None:
    for moves, taken in (("e2e4 a7a6 e4e5 d7d5 e5d6", 35), ("a2a3 d7d5 a3a4 d5d4 e2e4 d4e3", 28)):
        squares = squares_after(moves.split())
        assert squares[taken] == ""
        assert len([piece for piece in squares if piece]) == 31
