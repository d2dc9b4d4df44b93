"""What a look says of games of chess."""

from __future__ import annotations

import bz2
from pathlib import Path

import pytest

from gristmill.look import games
from gristmill.look.finding import look
from gristmill.look.report import lines

GAME = """[Event "E"]
[White "a"]
[WhiteElo "2100"]
[BlackElo "{elo}"]
[WhiteTitle "{title}"]
[BlackTitle "-"]
[Result "{result}"]

1. e4 {{ [Event "no tag"] }} e5 {result}

"""


def said(path: Path) -> list[str]:
    return [line for line in lines(look(path)) if "games by their tags" in line]


def test_games_ends_ratings_and_titles_are_counted_over_all_files(tmp_path: Path) -> None:
    (tmp_path / "twic").mkdir()
    first = GAME.format(elo="?", title="GM", result="1-0")
    second = GAME.format(elo="1850", title="bot", result="*")
    (tmp_path / "twic/a.pgn").write_text(first + second)
    (tmp_path / "twic/b.pgn.bz2").write_bytes(bz2.compress(first.replace("\n", "\r\n").encode()))
    assert said(tmp_path / "twic") == [
        "note: 3 games by their tags, 2 (67%) ended; ratings 1,850 to 2,100; players by title: "
        "2 GM, 1 BOT"
    ]


def test_lines_that_end_in_cr_alone_are_lines(tmp_path: Path) -> None:
    (tmp_path / "twic").mkdir()
    game = GAME.format(elo="1", title="", result="0-1").replace("\n", "\r")
    (tmp_path / "twic/a.pgn").write_text(game * 2)
    assert said(tmp_path / "twic") == [
        "note: 2 games by their tags, 2 (100%) ended; ratings 1 to 2,100"
    ]
    (tmp_path / "twic/a.pgn").write_text(game + game.replace("e5 0-1", "e5") * 3)
    assert said(tmp_path / "twic")[0].endswith(
        "ended; the moves of 3 end without a result; ratings 1 to 2,100"
    )


def test_moves_with_letters_of_another_language_are_named(tmp_path: Path) -> None:
    (tmp_path / "twic").mkdir()
    game = GAME.format(elo="1", title="", result="0-1").replace("e5 0-1", "e5 2.Sf3 Sc6 0-1")
    (tmp_path / "twic/a.pgn").write_text(game)
    said = "\n".join(lines(look(tmp_path / "twic")))
    assert "2 moves name pieces by letters of another language" in said
    for moves in ("\N{WHITE CHESS KNIGHT}f3 \N{BLACK CHESS KNIGHT}xc6", "Nf3 bxc6"):
        (tmp_path / "twic/a.pgn").write_text(game.replace("Sf3 Sc6", moves), encoding="utf-8")
        assert "letters of another" not in "\n".join(lines(look(tmp_path / "twic")))


def test_what_is_read_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "MOST_BYTES", 1 << 20)
    game = GAME.format(elo="1", title="", result="0-1")
    (tmp_path / "games_2024-01.pgn").write_text(game * (6 << 20 >> 7))
    (line,) = said(tmp_path / "games_2024-01.pgn")
    assert line.startswith("note: in the first 1 MiB of text: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "twic").mkdir()
    (tmp_path / "twic/a.pgn.bz2").write_bytes(bz2.compress(b"x" * 9999)[:-9])
    assert any(
        line.startswith("note: twic/a.pgn.bz2: ") or "a.pgn.bz2: " in line
        for line in lines(look(tmp_path / "twic"))
    )
