"""Names and texts of PGN: limits, first bytes, words between moves, and other spellings."""

import csv
import json
import os
import random
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest

from gristmill.chess import ValidateConfig, due_months, parse_month_list, validate
from gristmill.chess.format.rows import LOSSES
from gristmill.chess.raw import pgn as reader
from gristmill.chess.raw import pgn_text
from gristmill.chess.raw.pgn_text import (
    check_month,
    is_month,
    month_before,
    month_in,
    unread_tag,
    with_short_lines,
)
from gristmill.contract import BadInput
from tests.chess.both_readers import both_ways
from tests.chess.flag_rules import check
from tests.chess.raw.archives import said_within_a_gigabyte

GAME = b'[Event "a"]\n\n1. e4 *\n\n'
# A move that the compiled reader leaves to python-chess.
ODD = b'[Event "b"]\n\n1. e2e4 '


@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("piece", [1, 3, 7, 8, 100])
def test_a_line_may_have_so_many_bytes_and_no_more(monkeypatch, newline, piece):
    monkeypatch.setattr(pgn_text, "LINE_BYTES", 8)
    path = Path("x.pgn")

    def pieces(text: bytes) -> list[bytes]:
        return [text[at : at + piece] for at in range(0, len(text), piece)]

    for text in (b"", newline * 30, (b"12345" + newline) * 9, (b"12345678" + newline) * 3):
        assert b"".join(with_short_lines(pieces(text), path)) == text
    short = b"123" + newline
    assert b"".join(with_short_lines(pieces(short + b"x" * 8), path)) == short + b"x" * 8
    too_long = short * 2 + b"x" * 9 + newline + short
    with pytest.raises(BadInput, match=rf"line at byte {107 + 2 * (3 + len(newline))} has more"):
        list(with_short_lines(pieces(too_long), path, at=107))


@pytest.mark.parametrize(
    ("limit", "value", "text", "rule"),
    [
        ("TAGS", 3, b'[A "1"]\n[B "1"]\n[C "1"]\n' + ODD, "more than 3 tags"),
        ("PLIES", 3, ODD + b"e5 d4 d5", "more than 3 plies"),
        ("ERRORS", 2, ODD + b"Ke5 ) Ke5 ) Ke5", "more than 2 of its moves"),
        (
            "BLANK_LINES",
            4,
            ODD + b"{\n\n \n\t\n}",
            "more than 4 blank lines; is a comment left open",
        ),
        ("LINES", 6, ODD + b"{\n\n\n\n}", "more than 6 lines"),
        ("COMMENT_WORK", 279, ODD + b"{}" * 10, "too many comments"),
    ],
)
def test_a_game_beyond_a_limit_is_named(tmp_path, monkeypatch, limit, value, text, rule):
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes(GAME + text + b"\n\n")
    validate([pgn], tmp_path / "before")
    monkeypatch.setattr(pgn_text, limit, value)
    named = rf"x\.pgn.*game at byte {len(GAME)} cannot be read.*{rule}.*take it out"
    for compat in ("current", "reference"):
        with pytest.raises(BadInput, match=named):
            validate([pgn], tmp_path / compat, ValidateConfig(compat=compat))
    # The end of the text is asked for as one line more.
    monkeypatch.setattr(pgn_text, limit, value + (2 if limit == "LINES" else 1))
    validate([pgn], tmp_path / "after")


@pytest.mark.parametrize("tags", [1000, 1001])
def test_the_compiled_reader_takes_a_thousand_tags(tmp_path, tags):
    pgn = tmp_path / "x.pgn"
    game = b"".join(b'[T%d "a value"]\n' % n for n in range(tags)) + b"\n1. e4 *\n\n"
    pgn.write_bytes(GAME + game)
    if tags == 1000:
        assert validate([pgn], tmp_path / "out").oracle_games == 0
        both_ways(pgn, ValidateConfig())
    else:
        with pytest.raises(BadInput, match="more than 1000 tags"):
            validate([pgn], tmp_path / "out")


def test_empty_lines_are_searched_once(tmp_path, monkeypatch):
    """The search for the start of a game reaches the end of the file once, not for each range."""
    pgn = tmp_path / "x.pgn"
    pgn.write_bytes(b"\n" * 3_000_000)
    looks: list[int] = []

    def counted(file: int, size: int, at: int) -> bytes:
        looks.append(size)
        return real(file, size, at)

    real = os.pread
    monkeypatch.setattr("gristmill.chess.raw.pgn.os.pread", counted)
    assert len(reader.plan(pgn, 1000)) == 1
    assert sum(looks) < 3_200_000


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a long line": (lambda: GAME + ODD + b"{" + b"x" * 15_000_000 + b"} *\n", "line at byte 35"),
    "a long tag": (lambda: b'[Event "' + b"x" * 15_000_000 + b'"]\n\n*\n', "line at byte 0"),
    "empty lines": (lambda: b"\n" * 26_000_000, "holds no game"),
    "an open comment": (lambda: ODD + b"{ x\n" + (b"y" * 50 + b"\n") * 290_000 + b"\n" + GAME, ""),
    "a long comment": (lambda: ODD + b"{" + b"x\n" * 7_500_000 + b"} *\n", "1048576 lines"),
    "a comment in a game": (lambda: GAME[:-4] + b"{" + b"x\n" * 7_500_000 + b"} *\n", ""),
    "tags": (lambda: b"".join(b'[T%d "a"]\n' % n for n in range(400_000)), "1000 tags"),
    "moves": (lambda: ODD + b"Nf6\nNf3\nNg8\nNg1\n" * 200_000, "20000 plies"),
    "braces": (lambda: ODD + b"{}" * 500_000, "too many comments"),
    "errors": (lambda: ODD + b"Ke9 Ke5 )\n" * 400_000, "1000 of its moves"),
    "variations": (lambda: ODD + (b"(" * 99 + b"\n") * 5_000, ""),
}
LONG = {
    "empty lines",
    "an open comment",
    "a long comment",
    "a comment in a game",
    "tags",
    "moves",
    "variations",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in HOSTILE],
)
def test_a_hostile_pgn_takes_less_than_a_gigabyte(tmp_path, name):
    text, rule = HOSTILE[name]
    (tmp_path / "x.pgn").write_bytes(text())
    said = said_within_a_gigabyte("validate([file], file.parent / 'out')", tmp_path / "x.pgn")
    assert rule in said
    assert bool(said) == bool(rule)


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ('[White "Ann"]', True),
        ('[White "A"nn"]  ', True),
        ('[Event "[White "Ann"]"]', True),
        ('[White-Team "x"] [y', True),
        ("{\n[%clk 0:01]\n[I think so.]\n}", True),
        ("[White Ann]", False),
        ("[White 'Ann']", False),
        ('[White "Ann]', False),
        ('[ FEN "x"]', True),
        ('  [Result\t"1-0" ]', True),
        ('[white "Ann"]', False),
        ('[Event "E"] [Site"S"]', True),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_first_usual_tag_in_another_form_is_found(line, is_read, end):
    head = f'\ufeff[Event "E"]\n{line}\n[Site "cut'
    found = unread_tag(head.replace("\n", end).encode())
    assert found == ("" if is_read else line.strip())


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
def test_a_game_that_may_have_lost_moves_is_flagged(old, new, flag, detail, tmp_path):
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
def test_tags_of_the_end_are_those_of_the_moves(tag, is_flagged, tmp_path):
    for movetext in (f"{MOVES} 1-0", f"{MOVES.replace('Nf3', 'g1f3')} 1-0"):
        found = [name for name, _ in flags(tmp_path, movetext, f"{tag}\n")]
        assert found == (["ply_count"] if is_flagged else [])


@pytest.mark.parametrize("setting", LOSSES.values())
def test_each_flag_has_a_setting_that_drops_its_games(setting, tmp_path):
    movetext = f"{MOVES.replace('2.', '3. xyz')}"
    found = flags(tmp_path, movetext, '[PlyCount "8"]\n')
    assert [name for name, _ in found] == list(LOSSES.values())
    drop: Literal["drop"] = "drop"
    dropped = flags(tmp_path, movetext, '[PlyCount "8"]\n', **{setting: drop})
    assert dropped == [[setting, "xyz" if setting == "passed_over" else ""]]


@pytest.mark.parametrize("between", [" ", "\n", "\n\n", " {x} ", " $1 ", " (2. d4) ", " x ", "\0"])
@pytest.mark.parametrize("piece", ["N", "Ng", "N1", "\u2658"])
def test_a_piece_apart_from_its_square_is_no_pawn(piece, between, tmp_path):
    said = piece.replace("\u2658", "N")
    error = [("pgn_errors", f"{said!r} and 'f3' are apart: write {said}f3")]
    assert read(tmp_path, MOVES.replace("Nf3", f"{piece}{between}f3")) == ([], error)


@pytest.mark.parametrize("cut", ["O-O\n-O", "O-O- O", "O-\nO-O", "O -O-O", "O-\nO"])
@pytest.mark.parametrize("is_last", [False, True])
def test_castling_that_is_cut_is_not_that_of_the_other_side(cut, is_last, tmp_path):
    moves = "1. d4 d5 2. Nc3 Nc6 3. Bf4 Bf5 4. Qd2 Nf6 5. Nf3 e6 6. g3 Be7 7. Bg2 O-O 8. "
    error = [("pgn_errors", "castling is cut in two: write O-O or O-O-O as one word")]
    assert read(tmp_path, f"{moves}{cut} {'' if is_last else 'h6'}") == ([], error)


@pytest.mark.parametrize("between", [" ", "\n", " {x} ", " 1. "])
def test_moves_behind_a_result_are_no_moves_of_the_game(between, tmp_path):
    error = "moves follow the result 1-0: the next game needs a new line"
    rows, bad = read(tmp_path, f"{MOVES} 1-0{between}{MOVES} 0-1", "1-0")
    assert (rows, bad) == ([], [("pgn_errors", error)])


@pytest.mark.parametrize(
    "text", ["1/2", "\u00bd-\u00bd", "\u00bd", "1/2:1/2", "1:0", "0:1", "1 - 0"]
)
def test_results_in_other_forms_are_read(text, tmp_path):
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
def test_white_space_in_tags_and_several_on_a_line_are_those_of_pgn(tags, tmp_path):
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
def test_altered_real_games_have_the_flags_of_the_rules(real, tmp_path, seed, games):
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


SPELLED = (
    "1.e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O b5 6. Bb3 Bb7 7. a3 d6 8. a4 Qd7 9.a5 O-O-O"
)
SPELLED_UCI = (
    "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 b7b5 a4b3 c8b7 a2a3 d7d6 a3a4 d8d7 a4a5 e8c8"
)
WHITE = str.maketrans("KQRBN", "\u2654\u2655\u2656\u2657\u2658")
BLACK = str.maketrans("KQRBN", "\u265a\u265b\u265c\u265d\u265e")
PROMOTION = "1. e4 d5 2. exd5 c6 3. dxc6 Nf6 4. cxb7 Nbd7 5. bxa8=Q"


def read(
    folder: Path, movetext: str, result: str = "*", compat: Any = "current"
) -> tuple[list[Any], list[tuple[str, str]]]:
    """(Valid rows, reason and error of each rejected game) of one game."""
    pgn = folder / "x.pgn"
    tags = f'[Event "E"]\n[White "A"]\n[Black "B"]\n[Result "{result}"]\n\n'
    pgn.write_text(f"{tags}{movetext}\n\n", encoding="utf-8")
    out = folder / f"out{len(list(folder.iterdir()))}"
    validate([pgn], out, ValidateConfig(compat=compat, min_plies=1))
    with (out / "invalid_games.csv").open(newline="") as file:
        bad = [(row["reason"], row.get("error", "")) for row in csv.DictReader(file)]
    return [json.loads(line) for line in (out / "valid_games.jsonl").open()], bad


@pytest.mark.parametrize(
    "moves",
    [
        SPELLED.translate(WHITE),
        SPELLED.translate(BLACK),
        SPELLED.translate({ord("N"): "\u2658\ufe0e", ord("Q"): "\u265b\ufe0f"}),
        SPELLED.replace("e4", "\u2659e4").replace("e5", "\u265fe5"),
        SPELLED.replace("O", "o"),
        SPELLED.replace("O", "\u041e"),
        SPELLED.replace("O", "\u043e").replace("-", "\u2013"),
        *(SPELLED.replace("-", dash) for dash in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"),
        SPELLED.replace("Nf3 Nc6", "\u2658g1\u2013f3 \u265eb8\u2014c6"),
        SPELLED.replace("a6", "a6 {Sf3 o-o} (3... Sf6 4. o-o) \u00bd"),
    ],
)
def test_figurines_dashes_and_castling_in_other_letters_are_moves(moves, tmp_path):
    (row,), bad = read(tmp_path, moves)
    assert row["moves"] == SPELLED_UCI.split() and not bad


@pytest.mark.parametrize("sign", ["\u2655", "\u265b"])
def test_a_promotion_may_have_a_figurine(sign, tmp_path):
    (row,), _ = read(tmp_path, PROMOTION.replace("Q", sign))
    assert row["moves"][-1] == "b7a8q"


@pytest.mark.parametrize(
    ("end", "result"),
    [
        ("\u00bd-\u00bd", "1/2-1/2"),
        ("\u00bd\u2013\u00bd", "1/2-1/2"),
        ("1/2\u20131/2", "1/2-1/2"),
        ("1\u20130", "1-0"),
        ("0\u22121", "0-1"),
    ],
)
def test_results_with_other_dashes_and_halves_are_results(end, result, tmp_path):
    (row,), _ = read(tmp_path, f"{SPELLED} {end}")
    assert row["result"] == result


@pytest.mark.parametrize(
    ("moves", "named"),
    [
        # Every token but one is also the legal move of a pawn.
        ("1. Sf3 d5 2. c4 c6 3. d4 e6", "Sf3"),
        ("1. e4 e5 2.Sf3 d6", "Sf3"),
        ("1. e4 e5 2. nf3 nc6", "nf3"),
        ("1. e4 e5 2. \u041af3 d6", "\u041af3"),
        ("1. e4 e5 2. d4 d6 3. \u041a\u0440e2", "\u041a\u0440e2"),
        ("1. e4 e5 2. Sg1-f3 d6", "Sg1-f3"),
        ("1. e4 e5 2. Sf3 {Lb5} d6 3. Lb5", "Sf3"),
        ("1. e4 e5 2. Sf3 d6 3. Lf3 Df3", "Sf3"),
    ],
)
def test_a_piece_by_a_letter_of_another_language_rejects_the_game(moves, named, tmp_path):
    rows, bad = read(tmp_path, f"{moves} 1-0", "1-0")
    assert not rows
    assert bad == [("pgn_errors", f"{named!r} names no piece by K, Q, R, B or N")]


@pytest.mark.parametrize(
    "moves", ["1. Pe4 pe5 2. Nf3 Nc6", "1. e4 e5 2. N1f3 TN Nc6 Z", "1.e4e.p."]
)
def test_what_was_read_before_is_read_as_before(moves, tmp_path):
    (row,), bad = read(tmp_path, moves)
    assert row["moves"] == SPELLED_UCI.split()[: row["plies"]] and not bad


def test_moves_that_are_none_keep_their_errors_and_the_reference_reads_the_square(tmp_path):
    assert read(tmp_path, "1. e4 e5 2. 0-0")[1][0][1].startswith("illegal san: '0-0'")
    assert read(tmp_path, "1. e4 e5 2. @f6")[1] == [("pgn_errors", "invalid san: '@f6'")]
    (row,), _ = read(tmp_path, "1. Sf3 d5 2. \u2659c4", compat="reference")
    assert row["moves"] == ["f2f3", "d7d5", "c2c4"]


def test_months_are_read_from_lists_and_names_and_no_collection_is_one():
    text = (
        "# elite\n\n2025-01\n https://x/lichess_elite_2025-02.zip?raw=1\n2025-01\n"
        "see lichess_elite_2024-12.zip\n"
    )
    assert parse_month_list(text) == ["2025-01", "2025-02", "2024-12"]
    for bad in ("2025-1", "lichess_elite_2025-01.zip.part", "2025-13"):
        with pytest.raises(BadInput, match=r"Unsupported month entry|not a month"):
            parse_month_list(bad)
    with pytest.raises(BadInput, match="no months"):
        parse_month_list("# nothing\n")
    assert is_month("2024-12")
    assert is_month("2024-13") and not is_month("elite_2024-01") and not is_month("2024-1")
    assert month_in("x_2024-01.pgn") == "2024-01"
    assert month_in("12024-01.pgn") is None
    assert month_in("2024-01_2024-02.pgn") is None
    assert (month_before("2024-01"), month_before("2024-10")) == ("2023-12", "2024-09")
    assert check_month("2020-06") == "2020-06"
    for month in ("2020-05", "2024-00", "2024-13"):
        with pytest.raises(BadInput, match="not a month"):
            check_month(month)


def test_due_months_of_a_tick():
    year = [f"2024-{m:02d}" for m in range(3, 13)] + ["2025-01", "2025-02"]
    tick = date(2025, 3, 5)
    assert due_months(tick, set(year)) == []
    assert due_months(tick, set(year) - {"2024-03", "2025-02"}) == ["2024-03", "2025-02"]
    assert due_months(date(2020, 8, 1), set()) == ["2020-06", "2020-07"]
    # Months that never come do not keep the others waiting: four weeks ask for all twelve.
    asked: set[str] = set()
    for week in range(4):
        due = due_months(date.fromordinal(tick.toordinal() + 7 * week), set())
        assert len(due) == 3
        asked.update(due)
    assert asked == set(year)
    assert due_months(tick, set()) == due_months(tick, [])
