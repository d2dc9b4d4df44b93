"""Games that lost moves are flagged, and no word that is damaged is read as another move.

Rules: docs/formats/chess.md#words-that-are-no-moves
"""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.format.rows import LOSSES
from tests.chess.both_readers import both_ways
from tests.chess.flag_rules import check
from tests.chess.raw.test_spellings import read

MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5"
LAST = "r1bqk2r/2ppbppp/p1n2n2/1p2p3/B3P3/5N2/PPPP1PPP/RNBQR1K1 w"


def flags(folder: Path, movetext: str, tags: str = "", **settings: Any) -> list[list[str]]:
    """Flags and details of the one game, or the reason and error of its reject; by both readers."""
    pgn, out = folder / "x.pgn", folder / f"out{len(list(folder.iterdir()))}"
    pgn.write_text(f'[Event "E"]\n[White "A"]\n[Black "B"]\n{tags}\n{movetext}\n\n')
    config = ValidateConfig(**settings)
    both_ways(pgn, config)
    check(pgn)
    summary = validate([pgn], out, config)
    found = [
        [row.get("flag") or row["reason"], row.get("detail", row.get("error", ""))]
        for name in ("flagged_games.csv", "invalid_games.csv")
        for row in csv.DictReader((out / name).open(newline=""))
    ]
    assert sum((summary.flags or summary.reasons).values()) == len(found)
    return found


@pytest.mark.parametrize(
    ("old", "new", "flag", "detail"),
    [
        ("6. Re1 b5", "7. Re1 b5", "number_gap", "movetext 1-0"),
        ("6. Re1 b5", "99999999999999999999 Re1 b5", "number_gap", "movetext 1-0"),
        (" 1-0", "", "no_result", "movetext "),
        (" 1-0", "&nbsp;1-0", "no_result", "movetext "),
        ("Nc6", "Nc6 exd", "passed_over", "exd"),
        ("Nc6", "00 Nc6", "number_gap", "movetext 1-0"),
        ("Nc6", "Nc6}", "passed_over", "}"),
        ("Nc6", "Nc6 ♞x", "passed_over", "Nx"),
        ("1. e4", "1. ( e4", "passed_over", "("),
        ("Bb5 a6", "Bb5 D a6", "passed_over", "D"),
        *((" a6", f" {word} a6", "", "") for word in ("ch", "+-", "0.31/12", "[%x]", "(d6)", "RR")),
        *((" 4.", f" {word} 4.", "", "") for word in ("N", "e.p.", "ep", "mate", "D", "4", "=")),
        ("1-0", "1-0 \0", "", ""),
    ],
)
def test_a_game_that_may_have_lost_moves_is_flagged(
    old: str, new: str, flag: str, detail: str, tmp_path: Path
) -> None:
    found = flags(tmp_path, f"{MOVES} 1-0".replace(old, new, 1))
    for name, text in found:
        assert (name, text) == (flag, detail) or "&" in new
    assert bool(found) == bool(flag)


@pytest.mark.parametrize(
    ("tag", "is_flagged"),
    [
        ('[PlyCount "12"]', False),
        ('[PlyCount "012"]', False),
        ('[PlyCount "?"]', False),
        ('[PlyCount "13"]', True),
        (f'[CurrentPosition "{LAST} kq - 2 7"]', False),
        (f'[CurrentPosition "{LAST[:-1]}b kq - 2 7"]', True),
        (f'[CurrentPosition "{LAST.replace("/p1n", "/p1N")} kq - 2 7"]', True),
        ('[CurrentPosition "8/8 w"]', True),
    ],
)
def test_tags_of_the_end_are_those_of_the_moves(tag: str, is_flagged: bool, tmp_path: Path) -> None:
    for movetext in (f"{MOVES} 1-0", f"{MOVES.replace('Nf3', 'g1f3')} 1-0"):
        found = [name for name, _ in flags(tmp_path, movetext, f"{tag}\n")]
        assert found == (["ply_count"] if is_flagged else [])


@pytest.mark.parametrize("setting", LOSSES.values())
def test_each_flag_has_a_setting_that_drops_its_games(setting: str, tmp_path: Path) -> None:
    movetext = f"{MOVES.replace('2.', '3. xyz')}"
    found = flags(tmp_path, movetext, '[PlyCount "8"]\n')
    assert [name for name, _ in found] == list(LOSSES.values())
    drop: Literal["drop"] = "drop"
    dropped = flags(tmp_path, movetext, '[PlyCount "8"]\n', **{setting: drop})
    assert dropped == [[setting, "xyz" if setting == "passed_over" else ""]]


@pytest.mark.parametrize("between", [" ", "\n", "\n\n", " {x} ", " $1 ", " (2. d4) ", " x ", "\0"])
@pytest.mark.parametrize("piece", ["N", "Ng", "N1", "\u2658"])
def test_a_piece_apart_from_its_square_is_no_pawn(piece: str, between: str, tmp_path: Path) -> None:
    said = piece.replace("\u2658", "N")
    error = [("pgn_errors", f"{said!r} and 'f3' are apart: write {said}f3")]
    assert read(tmp_path, MOVES.replace("Nf3", f"{piece}{between}f3")) == ([], error)


@pytest.mark.parametrize("cut", ["O-O\n-O", "O-O- O", "O-\nO-O", "O -O-O", "O-\nO"])
@pytest.mark.parametrize("is_last", [False, True])
def test_castling_that_is_cut_is_not_that_of_the_other_side(
    cut: str, is_last: bool, tmp_path: Path
) -> None:
    moves = "1. d4 d5 2. Nc3 Nc6 3. Bf4 Bf5 4. Qd2 Nf6 5. Nf3 e6 6. g3 Be7 7. Bg2 O-O 8. "
    error = [("pgn_errors", "castling is cut in two: write O-O or O-O-O as one word")]
    assert read(tmp_path, f"{moves}{cut} {'' if is_last else 'h6'}") == ([], error)


@pytest.mark.parametrize("between", [" ", "\n", " {x} ", " 1. "])
def test_moves_behind_a_result_are_no_moves_of_the_game(between: str, tmp_path: Path) -> None:
    error = "moves follow the result 1-0: the next game needs a new line"
    rows, bad = read(tmp_path, f"{MOVES} 1-0{between}{MOVES} 0-1", "1-0")
    assert (rows, bad) == ([], [("pgn_errors", error)])


@pytest.mark.parametrize(
    "text", ["1/2", "\u00bd-\u00bd", "\u00bd", "1/2:1/2", "1:0", "0:1", "1 - 0"]
)
def test_results_in_other_forms_are_read(text: str, tmp_path: Path) -> None:
    result = {"1": "1-0", "0": "0-1"}.get(text[0] if text[1:2] in ": " else "", "1/2-1/2")
    (row,), _ = read(tmp_path, f"{MOVES} {result}", text)
    assert row["result"] == row["headers"]["Result"] == result
    if " " not in text:
        (row,), _ = read(tmp_path, f"{MOVES} {text} {{it ended}}")
        assert row["result"] == result


@pytest.mark.parametrize(
    "tags",
    [
        '[ White\t "Ann"\t]\n\t[Black"B]ob" ] \n',
        ' [White "Ann"] [Black "B]ob"][Round "1"]\n',
        '[White "Ann"]\t[Black "B]ob" ]\n',
    ],
)
def test_white_space_in_tags_and_several_on_a_line_are_those_of_pgn(
    tags: str, tmp_path: Path
) -> None:
    """python-chess reads one tag on a line, in one form; the PGN standard 8.1.1 has both."""
    pgn = tmp_path / "x.pgn"
    for event in ('  [Event "E"]\n', ""):
        pgn.write_text(f"{event}{tags}\n  {MOVES} 1-0\n\n" * 2)
        both_ways(pgn, ValidateConfig())
        validate([pgn], tmp_path / f"out{len(event)}")
        rows = (tmp_path / f"out{len(event)}/valid_games.jsonl").read_text().splitlines()
        assert len(rows) == 2 and all('"White": "Ann", "Black": "B]ob"' in row for row in rows)


def altered(dice: random.Random, game: str) -> str:
    """A game with some of its words lost, doubled, split, joined or misspelled."""
    words = re.split(r"(\s+)", game)
    for _ in range(dice.choice([1, 1, 2, 3])):
        at = dice.randrange(len(words))
        word = words[at]
        cut = dice.randrange(len(word) + 1)
        new = ["", word * 2, f"{word[:cut]} {word[cut:]}", f"{word[:cut]}\n{word[cut:]}"]
        new += [
            word[:cut] + word[cut + 1 :],
            word[:cut] + dice.choice("exNaD1/.(\0;-") + word[cut:],
        ]
        words[at] = dice.choice(new)
        if dice.random() < 0.3:
            del words[at : at + dice.choice([2, 4, 6])]
    return "".join(words)


@pytest.mark.parametrize(
    ("seed", "games"), [(1, 60), pytest.param(2, 1_000, marks=pytest.mark.slow)]
)
@pytest.mark.real
def test_altered_real_games_have_the_flags_of_the_rules(
    real: Path, tmp_path: Path, seed: int, games: int
) -> None:
    dice, pgn = random.Random(seed), tmp_path / "x.pgn"
    text = (real / "pgn/pgnmentor_Ding.pgn").read_bytes().decode("latin-1").replace("\r", "")
    whole = text.split("\n\n[Event ")[1:]
    chosen = [f"[Event {game}" for game in dice.sample(whole, min(games, len(whole)))]
    for game in [*chosen]:
        plies = len(re.findall(r"[a-hO][1-8-][O+#=\w-]*", game.partition("\n\n")[2]))
        chosen.append(f'[PlyCount "{plies}"]\n{altered(dice, game)}')
    pgn.write_text("\n\n".join(chosen), encoding="latin-1")
    both_ways(pgn, ValidateConfig())
    both_ways(pgn, ValidateConfig(number_gap="drop", passed_over="drop"))
    assert check(pgn) > games
