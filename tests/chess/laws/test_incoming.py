"""A look says of games what a build would, and of games in rows what makes a PGN of them."""

import bz2
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gristmill.chess.laws import incoming
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


PLAIN = GAME.format(elo="1", title="", result="0-1")


@pytest.fixture
def twic(tmp_path: Path) -> Path:
    (tmp_path / "twic").mkdir()
    return tmp_path / "twic"


def said(path: Path) -> list[str]:
    return [line for line in lines(look(path)) if "of which a build reads" in line]


def test_games_ends_ratings_and_titles_are_counted_over_all_files(twic):
    first = GAME.format(elo="?", title="GM", result="1-0")
    second = GAME.format(elo="1850", title="bot", result="*")
    (twic / "a.pgn").write_text(first + second)
    (twic / "b.pgn.bz2").write_bytes(bz2.compress(first.replace("\n", "\r\n").encode()))
    assert said(twic) == [
        "note: 3 games, of which a build reads 3, and 2 ended; ratings 1,850 to 2,100; "
        "players by title: 2 GM, 1 BOT"
    ]


def test_lines_that_end_in_cr_alone_are_lines(twic):
    game = PLAIN.replace("\n", "\r")
    (twic / "a.pgn").write_text(game * 2)
    assert said(twic) == [
        "note: 2 games, of which a build reads 2, and 2 ended; ratings 1 to 2,100"
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_games_that_may_have_lost_moves_are_counted_by_flag_as_a_build_does(tmp_path, end):
    game = PLAIN
    text = game + game.replace("e5 0-1", "e5") * 3 + game.replace("e5 0-1", "e5 3. d4 0-1")
    text += game.replace("e5 0-1", "e5 exd 0-1") + game.replace(
        "[Result", '[PlyCount "9"]\n[Result'
    )
    flags = "3 no_result, 1 ply_count, 1 passed_over"
    (tmp_path / "games.pgn").write_bytes(text.replace("\n", end).encode())
    (line,) = (each for each in lines(look(tmp_path / "games.pgn")) if "lost moves" in each)
    assert line.endswith(f": 1 number_gap, {flags}")


def test_games_twice_and_of_another_month_are_named_as_by_a_build(tmp_path):
    game = PLAIN.replace("[Result", '[Date "2024.02.01"]\n[Result')
    (tmp_path / "games_2024-01.pgn").write_text(game * 3)
    said = "\n".join(lines(look(tmp_path / "games_2024-01.pgn")))
    assert "note: equal_games: 2 games are in the PGN once more, such as " in said
    assert "note: other_month: 3 games have a date outside of the month, such as Date " in said
    (tmp_path / "games_2024-01.pgn").rename(tmp_path / "games_2024-02.pgn")
    assert "other_month" not in "\n".join(lines(look(tmp_path / "games_2024-02.pgn")))


def test_moves_with_letters_of_another_language_are_named(twic):
    game = PLAIN.replace("e5 0-1", "e5 2.Sf3 Sc6 0-1")
    (twic / "a.pgn").write_text(game)
    said = "\n".join(lines(look(twic)))
    assert "2 moves name pieces by letters of another language" in said
    for moves in ("\N{WHITE CHESS KNIGHT}f3 \N{BLACK CHESS KNIGHT}xc6", "Nf3 bxc6"):
        (twic / "a.pgn").write_text(game.replace("Sf3 Sc6", moves), encoding="utf-8")
        assert "letters of another" not in "\n".join(lines(look(twic)))


def test_what_is_read_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(incoming, "MOST_BYTES", 1 << 20)
    (tmp_path / "games_2024-01.pgn").write_text(PLAIN * (6 << 20 >> 7))
    (line,) = said(tmp_path / "games_2024-01.pgn")
    assert line.startswith("note: in the first 1 MiB of text: ")
    said_of = re.search(r"([0-9,]+) games, of which a build reads ([0-9,]+),", line)
    assert said_of is not None and said_of[1] == said_of[2]
    # Nor is the game in which the text was cut taken for one that lost moves.
    assert "lost moves" not in "\n".join(lines(look(tmp_path / "games_2024-01.pgn")))


def test_a_file_that_cannot_be_read_is_named(twic):
    (twic / "a.pgn.bz2").write_bytes(bz2.compress(b"x" * 9999)[:-9])
    assert any(
        line.startswith("note: twic/a.pgn.bz2: ") or "a.pgn.bz2: " in line
        for line in lines(look(twic))
    )


WON = PLAIN.replace("0-1", "1-0")
MOVES = "e4 e5 Nf3 Nc6 Bb5 a6"
ROWS = [
    {"id": f"g{n}", "moves": MOVES, **({"winner": side} if side else {"status": "draw"})}
    for n, side in enumerate(("white", "black", ""))
]
IN_ROWS = {
    "2024-01.json": json.dumps({"games": [{"url": "u", "pgn": WON}] * 3}),
    "its list.json": json.dumps([{"pgn": WON}] * 3),
    "rows.jsonl": f"{json.dumps({'text': {'game': WON}})}\n" * 3,
    "lichess.ndjson": "".join(json.dumps(row) + "\n" for row in ROWS),
    "games.csv": "id,winner,moves\n"
    + "".join(
        f"g,{side},1. e4 e5 2. Nf3 {end}\n" for side, end in (("white", "1-0"), ("draw", ""))
    ),
    "pgn.csv": "id,pgn\n" + f'g,"{WON.replace(chr(34), chr(34) * 2)}"\n' * 3,
}


@pytest.mark.parametrize("name", IN_ROWS)
def test_games_in_rows_are_named_with_what_makes_a_pgn_of_them(name, tmp_path):
    (tmp_path / name).write_text(IN_ROWS[name])
    (note,) = (line for line in lines(look(tmp_path)) if "games of chess in rows" in line)
    if shutil.which("jq") is None:
        pytest.skip("there is no jq here")
    command = note.partition("PGN: `")[2].partition(" > games.pgn")[0]
    text = subprocess.check_output(["sh", "-c", command], cwd=tmp_path, text=True)
    moves, results = MOVES, ["1-0", "0-1", "1/2-1/2"]
    if name == "games.csv":
        moves, results = "1. e4 e5 2. Nf3", ["1-0", "1/2-1/2"]
    made = "".join(f'[Event "?"]\n[Result "{end}"]\n\n{moves} {end}\n\n' for end in results)
    assert text.split() == (WON * 3 if "[WhiteElo" in text else made).split()


@pytest.mark.parametrize("moves", ["e2e4 e7e5 g1f3 b8c6", "a1 is a square", "Be4 it", "e4 e5"])
def test_other_texts_are_no_games(moves, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{json.dumps({'moves': moves})}\n" * 3)
    assert "games of chess" not in "\n".join(lines(look(tmp_path)))
