"""Boards: the pieces of python-chess, the last move, the phase."""

import xml.etree.ElementTree as ET

import chess

from gristmill.chess.samples import make_games
from gristmill.chess.show.board import board_svg, small_board_svg, squares_after
from gristmill.svg import OVERVIEW
from tests.drawings import is_right

SVG = "{http://www.w3.org/2000/svg}"


def test_boards_are_those_of_python_chess() -> None:
    for game in make_games("2024-01", 12, 9):
        board, uci = chess.Board(), []
        for san in game.moves:
            uci.append(board.push_san(san).uci())
        expected = [board.piece_at(square) for square in range(64)]
        assert squares_after(uci) == [piece.symbol() if piece else "" for piece in expected]


def test_a_board_shows_every_piece_and_the_last_move() -> None:
    svg = board_svg(["e2e4", "d7d5", "e4d5"], title="<b>&", phase="opening", notes=["note"])
    root = ET.fromstring(svg)
    uses = [node.attrib["href"] for node in root.iter(f"{SVG}use")]
    assert len(uses) == 31
    assert uses.count("#wp") == 8
    assert uses.count("#bp") == 7
    defined = {node.attrib["id"] for node in root.iter(f"{SVG}g")}
    assert {use[1:] for use in uses} <= defined
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert "<b>&" in texts
    assert "ply 3 · e4d5 · black to move · opening" in texts
    assert svg.count("#e9d56b") == svg.count("#d9bd3c") == 1
    assert len(svg) < 8000


def test_a_text_that_is_no_move_is_passed_over() -> None:
    assert squares_after(["0000", "e2e4", "P@e5"]) == squares_after(["e2e4"])
    assert 'fill="#d9bd3c"' not in board_svg(["e2e4", "0000"])
    assert "ply 0 · start · white to move" in board_svg([])


def test_a_pawn_taken_in_passing_leaves_its_square() -> None:
    for moves, taken in (("e2e4 a7a6 e4e5 d7d5 e5d6", 35), ("a2a3 d7d5 a3a4 d5d4 e2e4 d4e3", 28)):
        squares = squares_after(moves.split())
        assert squares[taken] == ""
        assert len([piece for piece in squares if piece]) == 31


def test_a_small_board_has_each_piece_on_its_square() -> None:
    moves = ["e2e4", "d7d5", "e4d5", "d8d5"]
    svg = small_board_svg(moves, "t" * 90, "<n>")
    is_right(svg, OVERVIEW)
    found = [""] * 64
    for node in list(ET.fromstring(svg).iter(f"{SVG}text"))[2:]:
        files, row = node.attrib["x"].split(), int(node.attrib["y"])
        for file, glyph in zip(files, node.text or "", strict=True):
            found[8 * (7 - row) + int(file)] = glyph
    letters = dict(zip("♔♕♖♗♘♙♚♛♜♝♞♟", "KQRBNPkqrbnp", strict=True))
    assert [letters.get(glyph, "") for glyph in found] == squares_after(moves)
    dark = ET.fromstring(svg).findall(f".//{SVG}path")[1].attrib
    # From the left in each row from the top: h8 and a1 are dark.
    assert dark["d"].split("M")[1:3] == ["1 0.5h7", "0 1.5h8"]
    assert dark["stroke-dasharray"] == "1"
