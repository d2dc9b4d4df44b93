"""Boards and the tables of rows."""

import io
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import chess
import pytest
from rich.console import Console

from gristmill import markdown
from gristmill.browse.opening import Files
from gristmill.browse.source import Record, Stored
from gristmill.chess import SpliceConfig, build_splice_cache, build_splice_dataset
from gristmill.chess.format.rows import moves_of
from gristmill.chess.samples import make_games
from gristmill.chess.show import board_svg, board_text, squares_after, tables
from gristmill.families import Misuse
from gristmill.svg import OVERVIEW
from tests.drawings import is_right

SVG = "{http://www.w3.org/2000/svg}"


def test_boards_are_those_of_python_chess_also_in_a_terminal() -> None:
    for game in make_games("2024-01", 12, 9):
        board, uci = chess.Board(), []
        for san in game.moves:
            uci.append(board.push_san(san).uci())
            svg = board_svg(uci, "W" * 90, "middlegame")
            assert len(markdown.image("ply 100", svg)) <= markdown.INLINE
        expected = [board.piece_at(square) for square in range(64)]
        assert squares_after(uci) == [piece.symbol() if piece else "" for piece in expected]
    text = board_text(["e2e4", "d7d5", "e4d5"])
    ranks = text.plain.splitlines()
    assert ranks[0] == "8  ♜  ♞  ♝  ♛  ♚  ♝  ♞  ♜ "
    assert ranks[3:5] == ["5           ♙             ", "4                         "]
    assert ranks[8].split() == list("abcdefgh")
    grounds = [str(span.style).rpartition(" ")[2] for span in text.spans]
    light, dark, last = "#d9c7a7", "#a8825c", "#c9b037"
    assert grounds[:9] == [light, dark] * 4 + [dark]
    assert [at for at, ground in enumerate(grounds) if ground == last] == [27, 36]


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


def test_a_text_that_is_no_move_is_passed_over_and_a_pawn_taken_in_passing_goes() -> None:
    assert squares_after(["0000", "e2e4", "P@e5"]) == squares_after(["e2e4"])
    assert board_svg(["e2e4", "0000"], "").count("<path") == 2
    assert "ply 0 · white to move" in board_svg([], "")
    assert "ply 1 · black to move" in board_svg(["e2e4"], "")
    assert len(board_text([]).plain.splitlines()) == 9
    for moves, taken in (("e2e4 a7a6 e4e5 d7d5 e5d6", 35), ("a2a3 d7d5 a3a4 d5d4 e2e4 d4e3", 28)):
        squares = squares_after(moves.split())
        assert squares[taken] == ""
        assert len([piece for piece in squares if piece]) == 31


def opened(asset: str, folder: Path) -> dict[str, Stored]:
    return {each.name: each for each in tables(asset, folder, Files(folder))}


def row(table: Stored, number: int) -> Record:
    [record] = table.open().read(number, 1, 9)
    return record


def text_of(table: Stored, number: int, ply: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(*table.drawn(row(table, number), {"ply": ply}))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_game_is_drawn_in_its_middle_at_its_end_or_after_some_plies(valid: Path) -> None:
    table = opened("chess/valid_games", valid)["games"]
    plies = row(table, 3).values["plies"]
    assert f"ply {plies} · " in text_of(table, 3)
    assert text_of(table, 3, plies) == text_of(table, 3)
    assert "ply 7 · opening · black" in text_of(table, 3, 7)
    assert "ply 0 · white to move" in text_of(table, 3, 0)
    for ply in (-1, plies + 1):
        with pytest.raises(Misuse, match=f"--ply {ply}: the row has {plies} plies"):
            text_of(table, 3, ply)
    record = row(table, 3)
    plies, players = record.values["plies"], record.values["headers.White"]
    pictures = table.pictures(record)
    assert [each.title for each in pictures] == [f"ply {plies // 2}", f"ply {plies}"]
    assert all(players[:12] in each.svg for each in pictures)


def test_samples_are_drawn_at_their_splice(valid: Path, dataset: Path, tmp_path: Path) -> None:
    game = shutil.copytree(dataset, tmp_path / "elite_game")
    build_splice_cache(game, game / "runtime_splice_cache")
    build_splice_dataset(valid, tmp_path / "cap2", SpliceConfig(max_samples_per_game=2))
    cached = opened("chess/splice_cache", game / "runtime_splice_cache")["val"]
    first = row(opened("chess/game_dataset", game)["val"], 0).values
    title = f"game {first['game_id'][:10]} · {first['result']}"
    [picture] = cached.pictures(row(cached, 1))
    assert picture.svg == board_svg(moves_of(first)[:9], title, "opening")
    assert "ply 9 · opening · black" in text_of(cached, 1)
    legacy = opened("chess/splice_dataset", tmp_path / "cap2")["val"]
    sample = row(legacy, 1)
    [picture] = legacy.pictures(sample)
    assert picture.title == f"ply {sample.values['ply']}"
    assert f"next move {sample.values['next_move']}" in picture.svg
    assert f"· {sample.values['phase']} · " in text_of(legacy, 1)


@pytest.mark.parametrize("asset", ["chess/game_dataset", "chess/splice_cache", "chess/subset"])
def test_a_split_is_chosen_by_its_option(asset: str, tmp_path: Path) -> None:
    chosen = {name: table.chosen for name, table in opened(asset, tmp_path).items()}
    splits = {split: {"split": split} for split in ("train", "val", "test")}
    assert chosen == splits | ({"vocabulary": {}} if asset == "chess/subset" else {})


def test_tables_of_games_are_asked_for_ids(valid: Path, tmp_path: Path) -> None:
    for name, table in opened("chess/valid_games", valid).items():
        assert table.ids == ("game_id",), name
        assert set(table.ids) <= set(table.open().types), name
    (tmp_path / "x.pgn").touch()
    assert opened("chess/elite_pgn", tmp_path)["x.pgn"].ids == ()
